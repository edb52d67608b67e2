package fence

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// maxPrograms bounds the names of one directory of a PATH that are looked at.
const maxPrograms = 10_000

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
// what it may not, with that one.
func (s search) before() map[string]string {
	hides := map[string]string{}
	for i, dir := range s.dirs {
		if !s.open[i] {
			continue
		}
		for _, name := range programs(dir) {
			for j, other := range s.dirs {
				at := filepath.Join(other, name)
				if j == i || !executable(at) {
					continue
				}
				if j < i {
					break // found first
				}
				if !s.open[j] {
					hides[filepath.Join(dir, name)] = at
					break
				}
			}
		}
	}
	return hides
}

// programs lists what can be executed in a directory.
func programs(dir string) (names []string) {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxPrograms)
	for _, e := range entries {
		if executable(filepath.Join(dir, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// changes says which programs a command put before others.
func (s search) changes(was map[string]string) (out []string) {
	now := s.before()
	for _, at := range slices.Sorted(maps.Keys(now)) {
		if was[at] == "" {
			out = append(out, fmt.Sprintf("the command made %q, which comes before %q on your PATH", at, now[at]))
		}
	}
	return out
}
