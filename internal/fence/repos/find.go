package repos

import (
	"io/fs"
	"os"
	"path/filepath"
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
// first, and enters none of git's own directories. complete is false where most
// directories were read and there are more.
func Find(top string, most int) (found []Repo, complete bool) {
	queue := []string{top}
	for n := 0; len(queue) > 0; n++ {
		if n == most {
			return found, false
		}
		dir := queue[0]
		queue = queue[1:]
		entries, _ := os.ReadDir(dir)
		here := inDirectory(dir, entries)
		found = append(found, here...)
		bare := len(here) > 0 && here[len(here)-1].Kind == Bare
		for _, e := range entries {
			if !e.IsDir() || e.Name() == ".git" || bare && internal[e.Name()] {
				continue
			}
			queue = append(queue, filepath.Join(dir, e.Name()))
		}
	}
	return found, true
}

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
