package fence

import (
	"os"
	"path/filepath"
	"runtime"
)

// gitProgram finds git on a PATH, "" for none. It passes over directories that are,
// or lead to, places that a command may write: a program planted there would be run
// here, outside any jail.
func gitProgram(path string, writable []string) string {
	name := "git"
	if runtime.GOOS == "windows" {
		name = "git.exe"
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		dir, err := realPath(dir)
		if err != nil {
			continue
		}
		program, err := realPath(filepath.Join(dir, name))
		if err != nil || withinAny(dir, writable) || withinAny(program, writable) {
			continue
		}
		if info, err := os.Stat(program); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return program
		}
	}
	return ""
}

func withinAny(path string, dirs []string) bool {
	for _, dir := range dirs {
		if within(path, dir) {
			return true
		}
	}
	return false
}
