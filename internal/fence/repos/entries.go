package repos

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// piece is how many entries of a directory are held at once: a command can make
// millions of them.
const piece = 1024

// eachEntry calls do for the entries of a directory, in its own order, until that is
// false. One that is not there has none; the error is Usable's.
func eachEntry(dir string, do func(fs.DirEntry) bool) error {
	f, err := os.OpenFile(dir, dirFlags, 0)
	if err != nil {
		return Usable(dir, err)
	}
	defer f.Close()
	for err == nil {
		var some []fs.DirEntry
		some, err = f.ReadDir(piece)
		for _, e := range some {
			if !do(e) {
				return Usable(dir, nil)
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return Usable(dir, err)
}

// Places are what a pattern, as of path.Match, finds below a directory. The
// directory's own name is no pattern.
type Places struct{ Dir, Pattern string }

// maxMatches bounds what one pattern finds, and maxLooks the entries that are read for
// it: more than any tool keeps.
const (
	maxMatches = 1 << 14
	maxLooks   = 1 << 17
)

// Matches lists them, and the directories in which there may be more.
func (p Places) Matches() (paths []string, shut []Shut) {
	looks := maxLooks
	return p.matches(&looks)
}

// matches takes one of looks for each entry that it reads, and ends when none is left.
func (p Places) matches(looks *int) (level []string, shut []Shut) {
	if p.Dir == "" {
		return nil, nil
	}
	level = []string{p.Dir}
	for name := range strings.SplitSeq(p.Pattern, "/") {
		var next []string
		for _, dir := range level {
			found, err := matching(dir, name, maxMatches-len(next), looks)
			if err != nil {
				shut = append(shut, Shut{dir, err})
			}
			next = append(next, found...)
		}
		level = next
	}
	return level, shut
}

// matching lists what a pattern without slashes finds in one directory, by name.
func matching(dir, pattern string, most int, looks *int) (paths []string, err error) {
	if !strings.ContainsAny(pattern, `*?[\`) {
		at := filepath.Join(dir, pattern)
		if *looks--; *looks < 0 || most <= 0 {
			return nil, ErrMore
		}
		if _, err = os.Lstat(at); err == nil {
			return []string{at}, nil
		}
		if Absent(err) {
			return nil, nil
		}
		return nil, Usable(dir, err)
	}
	more := false
	err = eachEntry(dir, func(e fs.DirEntry) bool {
		if *looks--; *looks < 0 || len(paths) >= most {
			more = true
			return false
		}
		if ok, _ := path.Match(pattern, e.Name()); ok {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
		return true
	})
	if err == nil && more {
		err = ErrMore
	}
	slices.Sort(paths)
	return paths, err
}
