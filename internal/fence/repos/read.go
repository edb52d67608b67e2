package repos

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxPointer bounds the files in which git keeps one path, in bytes.
const maxPointer = 8192

// ReadPointer reads a file that holds one path.
func ReadPointer(path string) (string, error) {
	text, err := ReadSmall(path, maxPointer)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// Pointed reads a .git file: the directory that it names, "" for none.
func Pointed(file string) string {
	text, err := ReadPointer(file)
	target, ok := strings.CutPrefix(text, "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	return Joined(filepath.Dir(file), target)
}

// Common is the directory with the configuration that a git directory obeys.
func Common(dir string) string {
	if text, err := ReadPointer(filepath.Join(dir, "commondir")); err == nil && dir != "" {
		return Joined(dir, text)
	}
	return dir
}

// Joined takes a path as git does: relative to a directory unless it is absolute.
func Joined(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// ReadSmall reads a regular file that is no link, up to a size in bytes.
func ReadSmall(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, readFlags, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("cannot read %q: it is no small regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	return b, nil
}
