package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

func protocolLimits(mem, pids uint64) protocol.Limits {
	return protocol.Limits{MemBytes: mem, Pids: pids}
}

// Only what has our shape, nobody's lock and no process goes.
func TestSweepRemovesLeftoversAndNothingElse(t *testing.T) {
	b := bareBase(t)
	at := func(name string) string { return filepath.Join(b.Path(), name) }

	gone := []string{"exec-1-1", fmt.Sprintf("exec-2-%d", os.Getpid()), "exec-3-999999/below/it"}
	for _, n := range gone {
		must(t, os.MkdirAll(at(n), 0o755))
	}
	stay := []string{"exec-1", "exec-1-01", "exec-1-1.bak", "service", "exec-7-7-7"}
	for _, n := range stay {
		must(t, os.Mkdir(at(n), 0o755))
	}
	live := create(t, b, 4, none) // its lock is held by another open description
	full := create(t, b, 5, none)
	waiter(t, full)
	must(t, full.dir.f.Close()) // its helper is dead, a process of it is not

	b.Sweep()
	for _, n := range gone {
		if n := at(n); exists(n) || exists(filepath.Join(b.Path(), "exec-3-999999")) {
			t.Errorf("%s was left", n)
		}
	}
	for _, n := range append(stay, filepath.Base(live.Path()), filepath.Base(full.Path())) {
		if !exists(at(n)) {
			t.Errorf("%s was removed", n)
		}
	}
	full.parent.f.Close()
	must(t, live.Remove(0))
}

// The lock alone keeps a live helper's empty cgroup: with it given up, the same
// cgroup goes.
func TestLockKeepsTheSweepAway(t *testing.T) {
	b := bareBase(t)
	g := create(t, b, 1, none)
	b.Sweep()
	if !exists(g.Path()) {
		t.Fatal("a cgroup whose lock was held was removed")
	}
	must(t, unix.Flock(g.FD(), unix.LOCK_UN))
	b.Sweep()
	if exists(g.Path()) {
		t.Fatal("a cgroup whose lock was not held was left")
	}
	g.dir.f.Close()
	g.parent.f.Close()
}

func TestSweepOfNothingIsSilent(t *testing.T) {
	b := bareBase(t)
	b.Sweep()
	if left, err := b.dir.children(); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A name can be taken: by a leftover, which goes, or by a live helper with the same
// pid in another pid namespace, which must not be shared.
func TestTakenNames(t *testing.T) {
	b := bareBase(t)
	own := filepath.Join(b.Path(), name(9, os.Getpid()))
	must(t, os.Mkdir(own, 0o755))
	g := create(t, b, 9, none)
	if g.Path() != own {
		t.Errorf("got %s although the leftover %s could be removed", g.Path(), own)
	}
	h := create(t, b, 9, none)
	if h.Path() == own || !isName(filepath.Base(h.Path())) {
		t.Errorf("got %s beside %s", h.Path(), own)
	}
	must(t, g.Remove(0))
	must(t, h.Remove(0))
}

// Whoever has a fresh cgroup's lock first, nobody waits for it: it is given up.
func TestHeldFreshCgroupIsGivenUp(t *testing.T) {
	b := bareBase(t)
	n := name(1, os.Getpid())
	must(t, os.Mkdir(filepath.Join(b.Path(), n), 0o700))
	other, err := b.dir.child(n)
	must(t, err)
	defer other.f.Close()
	must(t, unix.Flock(other.fd(), unix.LOCK_EX))
	done := make(chan error, 1)
	go func() {
		_, err := b.hold(n)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, errHeld) {
			t.Fatalf("got %v", err)
		}
	case <-time.After(testenv.Patience):
		must(t, unix.Flock(other.fd(), unix.LOCK_UN))
		t.Fatal("it waits")
	}
	if exists(filepath.Join(b.Path(), n)) {
		t.Error("it was left")
	}
}

// Another process of this user that locks every fresh cgroup and keeps it can make
// ceilings fail, with an error; it makes no start wait.
func TestLocksOfAnotherProcess(t *testing.T) {
	b := bareBase(t)
	stop, tried := make(chan struct{}), make(chan int)
	go func() {
		held := 0
		defer func() { tried <- held }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			names, _ := b.dir.children()
			for _, n := range names {
				if d, err := b.dir.child(n); err == nil {
					if unix.Flock(d.fd(), unix.LOCK_EX|unix.LOCK_NB) == nil {
						held++
					}
					defer d.f.Close()
				}
			}
		}
	}()
	made, refused := 0, 0
	for id := range uint64(100) {
		g, err := b.Create(id, none)
		switch {
		case err == nil:
			made++
			must(t, g.Remove(0))
		case errors.Is(err, errHeld) || errors.Is(err, errSwept):
			refused++
		default:
			t.Error(err)
		}
	}
	close(stop)
	t.Logf("%d made, %d refused, %d locked by the other", made, refused, <-tried)
	if made+refused != 100 {
		t.Error("an error of another kind")
	}
}

// The lock is for whoever may open the cgroup: its own user.
func TestChildrenAreClosedToOthers(t *testing.T) {
	b := bareBase(t)
	g := create(t, b, 1, none)
	info, err := os.Stat(g.Path())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	must(t, g.Remove(0))
}

// Between mkdir and the lock another helper's sweep can take the fresh cgroup for a
// leftover. Whoever wins, Create returns one that stays.
func TestSweepsRaceWithCreate(t *testing.T) {
	b := bareBase(t)
	d, reason := openBase(b.Path())
	if reason != "" {
		t.Fatal(reason)
	}
	other := &Base{dir: d, pid: 1}
	defer other.Close()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				other.Sweep()
			}
		}
	})
	for id := range uint64(300) {
		g, err := b.Create(id, none)
		if err != nil {
			t.Errorf("%d: %v", id, err)
			break
		}
		if !exists(g.Path()) {
			t.Errorf("%s is gone while it is held", g.Path())
		}
		if err := g.Remove(0); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}
