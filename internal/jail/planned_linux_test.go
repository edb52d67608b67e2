package jail

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
)

// A service that is started during the run, where none was, is a loss that stops the
// command; a directory there is nothing that can be connected to.
func TestServiceThatComes(t *testing.T) {
	dir := t.TempDir()
	service, other := filepath.Join(dir, "service"), filepath.Join(dir, "other")
	p := plan.Plan{Later: []string{service, other}}
	points, opening, _ := watched(p)
	if len(points) != 0 || !opening[service] || !opening[other] {
		t.Fatalf("watched: %q, %v", points, opening)
	}
	table, err := roots.OpenMounts(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan roots.Loss, 10)
	known := &everyMount{newPlanned(p, nil)}
	w, err := roots.StartWatch(table, points, known, func(lost []roots.Loss) {
		for _, l := range lost {
			told <- l
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // some looks
	l, err := net.Listen("unix", service)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	select {
	case loss := <-told:
		if loss.Path != service {
			t.Errorf("told of %+v", loss)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing was told")
	}
	defer w.Close()
	if lost, err := w.Stop(); err != nil || len(lost) != 1 {
		t.Errorf("lost %+v, %v", lost, err)
	}
}

// everyMount takes this process's own mounts for planned.
type everyMount struct{ *planned }

func (everyMount) Expected(roots.Mount, int) bool { return true }
func (everyMount) Lost(roots.Mount) []roots.Loss  { return nil }

// What a mask hid and what is gone with it is no loss; what the policy protects is one.
func TestBare(t *testing.T) {
	dir := t.TempDir()
	at, next := filepath.Join(dir, "s"), filepath.Join(dir, "next") // made first: numbers of inodes are used again
	for _, path := range []string{next, at} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	was, _ := stampOf(at)
	mask := func(list string) *planned {
		return newPlanned(plan.Plan{Ops: []plan.Op{{Path: at, Class: plan.MaskFile, Node: host.Node{ID: was.id}, Origin: plan.Origin{List: list}}}}, nil)
	}
	service, protected := mask("service-socket"), mask("protected")
	if service.Bare(at) {
		t.Error("what stays there is taken for gone")
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if !service.Bare(at) || protected.Bare(at) {
		t.Errorf("gone: service %v, protected %v", service.Bare(at), protected.Bare(at))
	}
	if err := os.Rename(next, at); err != nil {
		t.Fatal(err)
	}
	if from := time.Now(); service.Bare(at) || time.Since(from) > goneBound {
		t.Errorf("another one is not seen at once: %v", time.Since(from))
	}
}

// The jail's own mount at a masked point is what bubblewrap mounts there, and nothing
// that the host has or puts in its place.
func TestOwn(t *testing.T) {
	const point = "/ws/x"
	of := func(class plan.Class) *planned {
		return newPlanned(plan.Plan{Ops: []plan.Op{{Path: point, Class: class}}}, &roots.Reached{})
	}
	mount := func(root, fstype string, readOnly bool) roots.Mount {
		return roots.Mount{ID: 20, Parent: 10, Dev: "0:40", Root: root, Point: point, FSType: fstype, ReadOnly: readOnly}
	}
	const file = "/bindfileiYlj3q//deleted"
	for _, c := range []struct {
		class         plan.Class
		m             roots.Mount
		own, readOnly bool
	}{
		{plan.MaskDir, mount("/", "tmpfs", true), true, true},
		{plan.MaskDir, mount("/", "tmpfs", false), false, true},
		{plan.MaskDir, mount("/", "ext4", true), false, true},
		{plan.MaskDir, mount("/dir", "tmpfs", true), false, true},
		{plan.MaskFile, mount(file, "tmpfs", true), true, true},
		{plan.MaskFile, mount(file, "tmpfs", false), false, true},
		{plan.MaskFile, mount("/home/secret", "ext4", true), false, true},
		{plan.MountRO, mount("/ws/x", "ext4", true), true, true},
		{plan.Pin, mount("/ws/x", "ext4", true), true, false},
	} {
		if own, readOnly := of(c.class).Own(c.m, 1); own != c.own || readOnly != c.readOnly {
			t.Errorf("%v, %+v: own %v, read-only %v", c.class, c.m, own, readOnly)
		}
	}
}
