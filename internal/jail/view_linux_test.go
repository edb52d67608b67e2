package jail

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel says once that the mount table changed. Where it cannot be read then, the
// next execution must not be planned with the old one.
func TestMountTableThatCouldNotBeRead(t *testing.T) {
	table, err := openMountTable()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(table.fd)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	unix.Close(pipe[0]) // poll(2): POLLERR, and a pipe has no offset to read at
	real := table.fd
	table.fd = pipe[1]
	_, _, err = table.now()
	table.fd = real
	unix.Close(pipe[1])
	if err == nil {
		t.Fatal("what cannot be read is taken for a table")
	}
	table.mounts = nil
	if mounts, devices, err := table.now(); err != nil || len(mounts) == 0 || len(devices) == 0 {
		t.Errorf("%d mounts on %d devices, %v", len(mounts), len(devices), err)
	}
}
