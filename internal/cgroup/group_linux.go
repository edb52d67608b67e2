package cgroup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"sandboxd/protocol"
)

// createTries bounds how often another name is tried.
const createTries = 8

// Group is the cgroup of one execution. It is held by a shared lock for as long as
// it is open, which keeps every sweep away.
type Group struct {
	parent    dir // its own descriptor of the base
	name      string
	dir       dir
	limits    protocol.Limits // the ceilings that were asked for
	allowance atomic.Uint64
	swaps     bool // memory.max does not hold what is swapped out
}

// Create makes the cgroup for execution id and sets the ceilings that l asks for.
// A *[TooSmallError] means that the execution must be refused. After any other error
// nothing is left behind, and the execution has no ceiling: a skip with the error.
func (b *Base) Create(id uint64, l protocol.Limits) (*Group, error) {
	if err := checkMemory(l); err != nil {
		return nil, err
	}
	if Wanted(l) {
		if err := b.enable(); err != nil {
			return nil, err
		}
	}
	g, err := b.make(id)
	if err != nil {
		return nil, err
	}
	if err := g.set(l); err != nil {
		return nil, errors.Join(err, g.Remove(0))
	}
	return g, nil
}

// make makes a fresh, locked cgroup. A name can be taken: by what a killed helper
// with this pid left, by a helper in another pid namespace, or by this helper's own
// previous execution that is still being removed. Then another number stands in.
func (b *Base) make(id uint64) (*Group, error) {
	var err error
	for try := range createTries {
		n := name(id, b.pid)
		if err = unix.Mkdirat(b.dir.fd(), n, groupMode); errors.Is(err, unix.EEXIST) {
			if !b.sweep(n, time.Now()) {
				id = rand.Uint64()
			}
			continue
		}
		if err != nil {
			break
		}
		var g *Group
		if g, err = b.hold(n); err == nil {
			return g, nil
		}
		id = rand.Uint64()
		time.Sleep(time.Duration(try) * time.Millisecond) // a sweep is over by then
	}
	if errors.Is(err, unix.EAGAIN) { // cgroup_mkdir has it for these alone
		err = fmt.Errorf("its cgroup.max.descendants or cgroup.max.depth, or those of a cgroup above it, allow no more: %w", err)
	}
	return nil, fmt.Errorf("cannot make a cgroup in %s: %w", b.dir.path, err)
}

var (
	errSwept = errors.New("another helper's sweep removed it")
	errHeld  = errors.New("another process locked it before this one could")
)

// hold opens and locks the cgroup n that was just made. Between mkdir and the lock
// another helper may take it for a leftover and remove it, which shows afterwards.
func (b *Base) hold(n string) (*Group, error) {
	d, err := b.dir.child(n)
	if err != nil { // out of descriptors, for instance
		unix.Unlinkat(b.dir.fd(), n, unix.AT_REMOVEDIR)
		return nil, err
	}
	err = lockFresh(b.dir, n, d)
	var base *os.File
	if err == nil {
		base, err = openDir(b.dir.fd(), ".", unix.O_PATH)
	}
	if err != nil {
		d.f.Close()
		if !errors.Is(err, errSwept) {
			unix.Unlinkat(b.dir.fd(), n, unix.AT_REMOVEDIR)
		}
		return nil, err
	}
	return &Group{parent: dir{base, b.dir.path}, name: n, dir: d}, nil
}

// lockFresh does not wait for the lock: a sweep that has it removes the cgroup, and
// another process of this user could keep it for as long as it likes.
func lockFresh(parent dir, n string, d dir) error {
	_, err := retry(func() (int, error) { return 0, unix.Flock(d.fd(), unix.LOCK_SH|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errHeld
	}
	if err != nil {
		return fmt.Errorf("cannot lock it: %w", err)
	}
	var held, named unix.Stat_t
	if err := unix.Fstat(d.fd(), &held); err != nil {
		return err
	}
	err = unix.Fstatat(parent.fd(), n, &named, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || held.Ino != named.Ino || held.Dev != named.Dev {
		return errSwept
	}
	return nil
}

func (g *Group) set(l protocol.Limits) error {
	g.limits = l
	allowance := StartAllowance(l)
	for _, w := range Writes(l, allowance) {
		err := g.dir.write(w.Name, w.Data)
		switch {
		case w.Optional && errors.Is(err, unix.ENOENT):
			if w.Name == swapMax {
				g.swaps = swaps()
			}
		case err != nil:
			return fmt.Errorf("cannot set %s: %w", w.Name, err)
		}
	}
	g.allowance.Store(allowance)
	return nil
}

// Path is the cgroup's directory.
func (g *Group) Path() string { return g.dir.path }

// FD is a directory descriptor, close-on-exec, for SysProcAttr.CgroupFD. It is valid
// until Remove.
func (g *Group) FD() int { return g.dir.fd() }

// Frozen reports whether somebody froze the cgroup or one above it: what is born in it
// does not run.
func (g *Group) Frozen() bool {
	text, err := g.dir.read("cgroup.events")
	n, ok := counter(text, "frozen")
	return err == nil && ok && n != 0
}

// Swaps says whether more than the ceiling of memory can be used, because this machine
// swaps and does not count that: swap is not accounted (the kernel's swapaccount=), or
// has no file for it.
func (g *Group) Swaps() bool { return g.swaps }

// swaps says whether this machine has swap, or may have: proc_swaps(5), whose first line
// names the columns.
func swaps() bool {
	text, err := os.ReadFile("/proc/swaps")
	return err != nil && !errors.Is(err, unix.ENOENT) || listed(string(text)) > 1
}

func listed(text string) int {
	return len(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }))
}

// Allowance is by how many tasks pids.max exceeds the policy's pids at this moment:
// the scaffolding's share. 0 where no ceiling was asked for.
func (g *Group) Allowance() uint64 { return g.allowance.Load() }

// Remove waits for at most timeout until nothing lives in the cgroup, and removes it
// and what the execution made below it. It does not kill. On an error the cgroup
// stays, unlocked: the next helper's sweep removes it. Call it once.
func (g *Group) Remove(timeout time.Duration) error {
	defer g.parent.f.Close()
	defer g.dir.f.Close()
	deadline := time.Now().Add(timeout)
	if err := waitEmpty(g.dir, deadline); err != nil {
		procs, _ := g.dir.fields("cgroup.procs")
		return fmt.Errorf("cannot remove cgroup %s, %d processes are left in it: %w", g.dir.path, len(procs), err)
	}
	for {
		// Just after the last process went rmdir may still say EBUSY.
		err := removeTree(g.parent, g.name, 0)
		if err == nil || !errors.Is(err, unix.EBUSY) || !time.Now().Before(deadline) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}
