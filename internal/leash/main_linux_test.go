package leash

import (
	"os"
	"strconv"
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
