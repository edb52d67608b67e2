package jail

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
)

// Where the mount table cannot be read the next execution must not be planned with the old
// one, nor the one after it.
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
	before := table.version
	if mounts, devices, err := table.now(); err != nil || len(mounts) == 0 || len(devices) == 0 {
		t.Errorf("%d mounts on %d devices, %v", len(mounts), len(devices), err)
	}
	if table.version == before {
		t.Error("the table behind one that could not be read is the same")
	}
}

// A host may have far more mounts than one read gives, as one full of containers has.
func TestMountTableOfManyMounts(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "mounts are made")
	}
	table, err := openMountTable()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(table.fd)
	before, _, err := table.now()
	if err != nil {
		t.Fatal(err)
	}
	const many = 300
	top := filepath.Join(testenv.TempDir(t, testenv.Me()), strings.Repeat("long", 40))
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for unix.Unmount(top, unix.MNT_DETACH) == nil {
		}
	}()
	for range many {
		if err := unix.Mount("none", top, "tmpfs", 0, "size=4k"); err != nil {
			testenv.Skip(t, "mount", "cannot mount: "+err.Error())
		}
	}
	after, devices, err := table.now()
	if err != nil {
		t.Fatal(err)
	}
	here := 0
	for _, m := range after {
		if m.Point == top && slices.Contains(devices, m.Dev) {
			here++
		}
	}
	if here != many || len(after) < len(before) {
		t.Errorf("%d of %d mounts are known, and %d after %d of all", here, many, len(after), len(before))
	}
}
