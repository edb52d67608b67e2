package selftest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const sharedMemory = "/dev/shm"

// sweepMemory removes baits of killed runs.
func sweepMemory() { sweep(sharedMemory) }

// plantInMemory puts a file with text into shared memory. It gets its name when it is
// locked already, so that no sweep takes it for a killed run's.
func (sh *shared) plantInMemory(path, text string) error {
	fd, err := unix.Open(sharedMemory, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), path)
	_, err = f.WriteString(text)
	if err == nil {
		err = unix.Flock(fd, unix.LOCK_EX)
	}
	if err == nil {
		err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	sh.onClose(func() { os.Remove(path); f.Close() })
	return nil
}

// short gives a name of the same place that fits into a socket's address, which has 108
// bytes (unix(7)), and what to do when it is no longer needed.
func short(path string) (string, func(), error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, filepath.Base(path)), func() { unix.Close(fd) }, nil
}
