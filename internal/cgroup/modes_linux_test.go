package cgroup

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

const nobody = 64198

// asOwner has this test act as an ordinary user whom the base belongs to: modes do not
// stop root. The file system's idea of a user is each thread's own (setfsuid(2)).
func asOwner(t *testing.T, b *Base) {
	if os.Getuid() != 0 {
		return
	}
	for _, name := range []string{"", "/cgroup.procs"} {
		must(t, os.Chown(b.Path()+name, nobody, -1))
	}
	runtime.LockOSThread()
	_, _ = unix.SetfsuidRetUid(nobody)
	t.Cleanup(func() {
		_, _ = unix.SetfsuidRetUid(0)
		runtime.UnlockOSThread()
	})
}

// A command without a jail can take its cgroup's modes away, but not from the helper.
func TestModesAreTakenBack(t *testing.T) {
	b := bareBase(t)
	asOwner(t, b)
	closed := func(id uint64) *Group {
		g := create(t, b, id, none)
		for _, name := range []string{"/cgroup.events", "/cgroup.procs", "/cgroup.kill", ""} {
			if err := os.Chmod(g.Path()+name, 0); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		if _, err := os.ReadDir(g.Path()); !os.IsPermission(err) {
			t.Fatalf("a closed cgroup: %v", err)
		}
		return g
	}
	g := closed(1)
	must(t, g.Kill())
	if n, err := g.count("cgroup.events", "populated"); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	must(t, g.Remove(0))

	held, left := closed(2), closed(3)
	left.dir.f.Close()
	left.parent.f.Close()
	b.Sweep()
	if exists(left.Path()) || !exists(held.Path()) {
		t.Errorf("after the sweep: what was left %v, what is held %v", exists(left.Path()), exists(held.Path()))
	}
	must(t, held.Remove(0))
	if exists(g.Path()) || exists(held.Path()) {
		t.Error("a closed cgroup stays")
	}
}
