package fence

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"sandboxd/internal/roots"
)

// gitProgram finds git on a PATH, "" for none. It passes over what is, or is reached
// through a link in, a place that a command may write, or may have written under another
// preset, as /tmp: a program planted there would be run here, outside any jail.
func gitProgram(path string, writable []string) string {
	name := "git"
	if runtime.GOOS == "windows" {
		name = "git.exe"
	}
	writable = append(slices.Clone(writable), spellings(roots.SharedDirs(nil))...)
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if dir, err := realPath(dir); err != nil || withinAny(dir, writable) {
			continue
		}
		at := filepath.Join(dir, name)
		program, err := realPath(at)
		if err != nil || withinAny(program, writable) || !steady(at, writable) {
			continue
		}
		if info, err := os.Stat(program); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return program
		}
	}
	return ""
}

// steady says whether no command can have planted a link on the way to a path.
func steady(path string, writable []string) bool {
	s, err := roots.Survey([]string{path}, roots.Writability{Shared: writable})
	if err != nil {
		return false
	}
	s.Close()
	return true
}

func withinAny(path string, dirs []string) bool {
	for _, dir := range dirs {
		if within(path, dir) {
			return true
		}
	}
	return false
}
