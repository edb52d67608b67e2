package repos

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Kind is the form in which a repository is there.
type Kind int

const (
	Dir  Kind = iota // a directory .git
	File             // a file .git, which names a directory
	Link             // a symbolic link .git
	Bare             // HEAD in the directory itself, with objects and refs or a commondir
)

// Repo is one place that git takes for a repository.
type Repo struct {
	Top  string // the directory that git has to be in
	Git  string // Top/.git, or Top itself for a bare one
	Kind Kind
}

// Search is how many directories are searched for repositories: about half a second.
const Search = 20_000

// Find looks for repositories in a directory and below it, in the nearest directories
// first, and enters none of git's own directories. shut are those with what it could not
// look at. complete is false where most directories were read and there are more.
func Find(top string, most int) (found []Repo, shut []Shut, complete bool) {
	queue := []string{top}
	complete = true
	for n := 1; len(queue) > 0 && n <= most; n++ {
		dir := queue[0]
		queue = queue[1:]
		here, below, all, err := directory(dir, most-n-len(queue))
		if err != nil {
			shut = append(shut, Shut{dir, err})
		}
		found, complete = append(found, here...), complete && all
		for _, name := range below {
			queue = append(queue, filepath.Join(dir, name))
		}
	}
	return found, shut, complete && len(queue) == 0
}

// directory reads one: what git takes for a repository there, and the directories in it
// to go on with, of which no more than room are kept. Of one that cannot be listed it
// finds what git would, by name.
func directory(dir string, room int) (found []Repo, below []string, all bool, err error) {
	var own []fs.DirEntry
	keep := max(room, 0) + len(internal) + 1
	err = eachEntry(dir, func(e fs.DirEntry) bool {
		if marks[e.Name()] {
			own = append(own, e)
		}
		if e.IsDir() && e.Name() != ".git" && len(below) < keep {
			below = append(below, e.Name())
		}
		return true
	})
	if err != nil {
		return inDirectory(dir, known(dir)), nil, true, err
	}
	found = inDirectory(dir, own)
	if len(found) > 0 && found[len(found)-1].Kind == Bare {
		below = slices.DeleteFunc(below, func(name string) bool { return internal[name] })
	}
	slices.Sort(below)
	below = searched(dir, below)
	if len(below) > room {
		return found, below[:max(room, 0)], false, nil
	}
	return found, below, true, nil
}

// kernels are what no repository lies in, directly below the root directory: a jail has a
// /proc and /dev of its own, and the host's can hold more directories than are searched.
var kernels = []string{"dev", "proc", "sys"}

// searched leaves those out.
func searched(dir string, below []string) []string {
	if dir != "/" {
		return below
	}
	return slices.DeleteFunc(below, func(name string) bool { return slices.Contains(kernels, name) })
}

// known are the marks that a directory has.
func known(dir string) (entries []fs.DirEntry) {
	for name := range marks {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			entries = append(entries, fs.FileInfoToDirEntry(info))
		}
	}
	return entries
}

// marks are the names that inDirectory looks at.
var marks = map[string]bool{".git": true, "HEAD": true, "commondir": true, "objects": true, "refs": true}

// internal are directories of a bare repository in which no work lies.
var internal = map[string]bool{"objects": true, "refs": true, "hooks": true, "info": true, "logs": true}

// inDirectory says what the entries of one directory make of it; bare is the last.
func inDirectory(dir string, entries []fs.DirEntry) (found []Repo) {
	has := map[string]bool{}
	for _, e := range entries {
		switch e.Name() {
		case ".git":
			found = append(found, Repo{dir, filepath.Join(dir, ".git"), kindOf(e.Type())})
		case "HEAD", "commondir": // the second says where the objects and refs are
			has[e.Name()] = true
		case "objects", "refs": // git follows a link here
			has[e.Name()] = e.IsDir() || e.Type()&fs.ModeSymlink != 0
		}
	}
	if has["HEAD"] && (has["commondir"] || has["objects"] && has["refs"]) {
		found = append(found, Repo{dir, dir, Bare})
	}
	return found
}

func kindOf(mode fs.FileMode) Kind {
	switch {
	case mode.IsDir():
		return Dir
	case mode&fs.ModeSymlink != 0:
		return Link
	}
	return File
}
