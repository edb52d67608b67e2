package fence

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sandboxd/internal/fence/repos"
)

// maxPrograms bounds the names that are listed of one directory that a command may write:
// of one that has more the names that count are tried. maxOtherPrograms is for one that it
// may not write, of which each name counts.
const (
	maxPrograms      = 10_000
	maxOtherPrograms = 100_000
)

// search is the caller's PATH as it is outside, with the directories that a command may
// write: a program that is made there is run in place of another one's.
type search struct {
	dirs []string
	open []bool
}

// searched takes the PATH apart. A relative entry is whatever directory its user stands
// in, which the workspace is.
func (b *builder) searched() (s search) {
	path, _ := b.in.Env("PATH")
	writable := false
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(b.repo.top, dir)
		}
		if real, err := realPath(dir); err == nil {
			dir = real
		}
		open := b.grantedAbove(dir) && !b.readOnly(dir)
		s.dirs, s.open = append(s.dirs, dir), append(s.open, open)
		writable = writable || open
	}
	if !writable {
		return search{}
	}
	return s
}

// readOnly says whether the guard keeps a directory as it is.
func (b *builder) readOnly(dir string) bool {
	return slices.ContainsFunc(b.out.Guards, func(g Guard) bool { return within(dir, g.Path) })
}

// before gives the programs in what a command may write that are found before one in
// what it may not, with that one; unseen are directories of these of which some name may
// be missing.
func (s search) before() (hides map[string]string, unseen []string) {
	hides = map[string]string{}
	var others []string
	for i, dir := range s.dirs {
		if !s.open[i] {
			continue
		}
		names, err := programs(dir, maxPrograms)
		if err != nil {
			if others == nil {
				others, unseen = s.closed()
			}
			names = others
		}
		for _, name := range names {
			if at := filepath.Join(dir, name); executable(at) {
				if other := s.hidden(i, name); other != "" {
					hides[at] = other
				}
			}
		}
	}
	return hides, unseen
}

// hidden is the program of a name that the one in directory i is found before, "" where
// that one is found later itself, or what it hides is the command's to change as well.
func (s search) hidden(i int, name string) string {
	for j, other := range s.dirs {
		at := filepath.Join(other, name)
		if j == i || !executable(at) {
			continue
		}
		if j < i {
			return "" // found first
		}
		if !s.open[j] {
			return at
		}
	}
	return ""
}

// closed lists the names in what the command may not write.
func (s search) closed() (names, unseen []string) {
	seen := map[string]bool{}
	names = []string{}
	for i, dir := range s.dirs {
		if s.open[i] {
			continue
		}
		list, err := programs(dir, maxOtherPrograms)
		if err != nil {
			unseen = append(unseen, dir)
		}
		for _, name := range list {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names, unseen
}

// programs lists the names in a directory; the error is that there may be more.
func programs(dir string, most int) (names []string, err error) {
	if !isDir(dir) { // a fifo would keep who opens it
		return nil, nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, repos.Usable(dir, err)
	}
	defer f.Close()
	names, err = f.Readdirnames(most)
	if err == nil && len(names) == most {
		return names, repos.ErrMore
	}
	if err == nil || errors.Is(err, io.EOF) {
		return names, nil
	}
	return names, repos.Usable(dir, err)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// changes says which programs a command put before others.
func (s search) changes(was map[string]string) (out []string) {
	now, unseen := s.before()
	for _, at := range slices.Sorted(maps.Keys(now)) {
		if was[at] == "" {
			out = append(out, fmt.Sprintf("the command made %q, which comes before %q on your PATH", at, now[at]))
		}
	}
	for _, dir := range unseen {
		out = append(out, fmt.Sprintf("the programs in %q, which is on your PATH, could not be looked at, so that the command may have put one before them", dir))
	}
	return out
}
