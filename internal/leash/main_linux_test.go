package leash

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A pidfd is that of the process which /proc has under a number, or nobody is killed.
func TestNamed(t *testing.T) {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if self := strconv.Itoa(os.Getpid()); !named(fd, self) || named(fd, self+"1") || named(fd, self[1:]) {
		t.Error("it is taken for another")
	}
	if named(0, strconv.Itoa(os.Getpid())) {
		t.Error("what is no pidfd names a process")
	}
}

// Whichever of fork's steps lacks a descriptor, the reason is the limit: another thread
// that closes one between the steps decides which.
func TestOutOfDescriptors(t *testing.T) {
	for _, e := range []syscall.Errno{unix.EMFILE, unix.EBADF} {
		if err := failed(os.NewSyscallError("fork/exec", e)); !strings.Contains(err.Error(), "too many open files") {
			t.Errorf("%v: %v", e, err)
		}
	}
}

// An end is told only where there was one.
func TestHappens(t *testing.T) {
	ours, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	fd := int32(ours.Fd())
	if happens(fd, unix.POLLHUP, 0) {
		t.Error("a pipe that is held has ended")
	}
	held.Close()
	if !happens(fd, unix.POLLHUP, forEver) {
		t.Error("a pipe that nobody holds has not ended")
	}
	if happens(1<<20, unix.POLLIN, forEver) {
		t.Error("what is not open has ended")
	}
}
