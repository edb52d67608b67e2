//go:build unix

package selftest

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// interruptible ends with the first signal that asks for an end; the helpers are
// then shut down and the fixture removed.
func interruptible() (context.Context, func()) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// free says whether nobody holds the lock on a file that is there.
func free(path string) bool {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil
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

// setuidProgram is that copy, or one of the system's own.
func setuidProgram(s *site) []string {
	if file := s.path("setuid/prog"); exists(file) {
		return []string{file, "--probe-stay", s.nonce}
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

// IsTerminal says whether f is a terminal: only one has a window size (tty_ioctl(4)).
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
