//go:build unix

package selftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// claim makes a directory below parent that holds a lock for as long as this process
// lives. The lock, and no age, is what tells a fixture in use from one that a killed run
// left (see sweep). It is taken before anything is in the directory.
func claim(parent string) (dir string, release func(), err error) {
	for range 1000 { // each of them takes microseconds, and a loaded machine loses many
		if dir, err = os.MkdirTemp(parent, prefix); err != nil {
			return "", nil, fmt.Errorf("cannot make a fixture: %w", err)
		}
		f, err := os.Open(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // another run's sweep came first
		}
		if err != nil {
			return "", nil, fmt.Errorf("cannot make a fixture: %w", errors.Join(err, os.Remove(dir)))
		}
		// Where a file system has no locks, nobody else's sweep gets one either.
		_ = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if same(f, dir) {
			return dir, func() { os.RemoveAll(dir); f.Close() }, nil
		}
		f.Close()
	}
	return "", nil, fmt.Errorf("cannot make a fixture: other runs remove every directory below %q", parent)
}

// sweep removes what killed runs of this user left below dir.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			sweepOne(filepath.Join(dir, e.Name()))
		}
	}
}

// sweepOne removes path if it is this user's and nobody holds its lock, which it takes
// meanwhile: so nobody else removes it too, and a run that just made it starts again.
func sweepOne(path string) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Geteuid() ||
		unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil || !same(f, path) {
		return
	}
	os.RemoveAll(path)
}

// same says whether path still names the open file.
func same(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(open, named)
}

// room says why a fixture below dir would not fit, or "".
func room(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || st.Blocks == 0 {
		return "" // not told
	}
	if free := uint64(st.Bavail) * uint64(st.Bsize); free < needed {
		return fmt.Sprintf("%q has %d MiB free, and %d MiB are needed", dir, free>>20, needed>>20)
	}
	return ""
}

// leak opens a file without close-on-exec, which every child inherits: helpers too.
func (sh *shared) leak(path string) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT, 0o600)
	if err != nil {
		return // the control finds none
	}
	sh.leaked = fd
	sh.onClose(func() { unix.Close(fd) })
}

// nobody is the user that a set-user-ID copy of this program belongs to.
const nobody = 65534

// plantSetuid makes one where the caller may.
func plantSetuid(s *site) error {
	if err := os.MkdirAll(s.path("setuid"), 0o755); err != nil || os.Geteuid() != 0 {
		return err
	}
	file := s.path("setuid/prog")
	if err := copyFile(s.probe(), file); err != nil {
		return err
	}
	if os.Chown(file, nobody, nobody) != nil {
		return nil // the control says that nothing is gained
	}
	return os.Chmod(file, os.ModeSetuid|0o755)
}

// setuidProgram is that copy, or one of the system's own, with arguments that let it
// end by itself.
func setuidProgram(s *site) []string {
	if file := s.path("setuid/prog"); exists(file) {
		return []string{file, "--version"}
	}
	for _, name := range []string{"su", "passwd", "chsh", "newgrp", "sudo"} {
		for _, dir := range []string{"/usr/bin", "/bin"} {
			file := filepath.Join(dir, name)
			if info, err := os.Stat(file); err == nil && info.Mode()&os.ModeSetuid != 0 {
				return []string{file, "--help"}
			}
		}
	}
	return []string{s.path("setuid/none-on-this-host")}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
