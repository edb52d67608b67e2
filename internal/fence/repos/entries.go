package repos

import (
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
// false. One that cannot be read has none.
func eachEntry(dir string, do func(fs.DirEntry) bool) {
	f, err := os.OpenFile(dir, dirFlags, 0)
	if err != nil {
		return
	}
	defer f.Close()
	for err == nil {
		var some []fs.DirEntry
		some, err = f.ReadDir(piece)
		for _, e := range some {
			if !do(e) {
				return
			}
		}
	}
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

// Matches lists them.
func (p Places) Matches() []string {
	looks := maxLooks
	return p.matches(&looks)
}

// matches takes one of looks for each entry that it reads, and ends when none is left.
func (p Places) matches(looks *int) []string {
	if p.Dir == "" {
		return nil
	}
	level := []string{p.Dir}
	for name := range strings.SplitSeq(p.Pattern, "/") {
		var next []string
		for _, dir := range level {
			next = append(next, matching(dir, name, maxMatches-len(next), looks)...)
		}
		level = next
	}
	return level
}

// matching lists what a pattern without slashes finds in one directory, by name.
func matching(dir, pattern string, most int, looks *int) (paths []string) {
	if !strings.ContainsAny(pattern, `*?[\`) {
		at := filepath.Join(dir, pattern)
		if *looks--; *looks >= 0 && most > 0 && exists(at) {
			paths = append(paths, at)
		}
		return paths
	}
	eachEntry(dir, func(e fs.DirEntry) bool {
		if *looks--; *looks < 0 || len(paths) >= most {
			return false
		}
		if ok, _ := path.Match(pattern, e.Name()); ok {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
		return true
	})
	slices.Sort(paths)
	return paths
}
