package cgroup

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	busyTries = 12                     // 1+2+4+...: about 0.4 s in all
	sweepWait = 200 * time.Millisecond // for jails that are just dying with their helper
)

// enable turns the controllers on for the base's children. Just after processes
// ended the kernel can answer EBUSY while cgroup.procs is empty already (3 of 10
// runs on 5.10): that is retried, for at most half a second.
func (b *Base) enable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.enabled {
		return nil
	}
	on, err := b.dir.fields("cgroup.subtree_control")
	if err != nil {
		return fmt.Errorf("cannot read which controllers are on: %w", err)
	}
	if !containsAll(on, controllers) {
		if err := b.enableNow(); err != nil {
			return err
		}
	}
	b.enabled = true
	return nil
}

func (b *Base) enableNow() error {
	err := retryBusy(func() error {
		return b.dir.write("cgroup.subtree_control", "+"+strings.Join(controllers, " +"))
	}, time.Sleep)
	if err != nil {
		return fmt.Errorf("cannot enable the controllers memory and pids for the children of the cgroup base: %w", err)
	}
	return nil
}

func retryBusy(call func() error, pause func(time.Duration)) error {
	delay := time.Millisecond
	for try := 1; ; try++ {
		err := call()
		if !errors.Is(err, unix.EBUSY) || try == busyTries {
			return err
		}
		pause(delay)
		delay = min(2*delay, 64*time.Millisecond)
	}
}

// Sweep removes what helpers that were killed left in the base, and nothing else:
// only cgroups named as this package names them, whose helper no longer holds its
// lock, and in which nothing lives. It says nothing, and what cannot be removed stays.
func (b *Base) Sweep() {
	names, err := b.dir.children()
	if err != nil {
		return
	}
	deadline := time.Now().Add(sweepWait)
	for _, n := range names {
		if isName(n) {
			b.sweep(n, deadline)
		}
	}
}

// sweep removes one leftover. The lock decides whether its helper lives: a pid may
// have been reused, or may belong to another pid namespace.
func (b *Base) sweep(name string, deadline time.Time) bool {
	d, err := b.dir.child(name)
	if err != nil {
		return false
	}
	defer d.f.Close()
	if unix.Flock(d.fd(), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	return waitEmpty(d, deadline) == nil && removeTree(b.dir, name, 0) == nil
}
