package jail

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
)

// planned tells the mounts of a plan from those that the host made during the run
// and that propagated into the jail. Nothing else uses the survey meanwhile.
type planned struct {
	plan    plan.Plan
	reached *roots.Reached
	bound   map[string]bool // paths at which something of the host is bound
	made    map[string]bool // paths at which the jail mounts something of its own
	masks   map[string]bool // of these: whether a directory hides what is there, or a file
	pins    map[string]bool
	places  map[string]host.ID // of these, what they hide that the policy does not name
	secrets []string           // what is protected
	looks   atomic.Bool        // Came does
}

func newPlanned(p plan.Plan, r *roots.Reached) *planned {
	w := &planned{plan: p, reached: r, bound: map[string]bool{}, made: map[string]bool{}, masks: map[string]bool{}, pins: map[string]bool{}, places: map[string]host.ID{}}
	for _, op := range p.Ops {
		w.pins[op.Path] = op.Class == plan.Pin
		switch op.Class {
		case plan.MaskDir, plan.MaskFile:
			w.made[op.Path], w.masks[op.Path] = true, op.Class == plan.MaskDir
			if op.Origin.List != "protected" {
				w.places[op.Path] = op.Node.ID
			}
		case plan.RootTmpfs, plan.ScratchTmpfs, plan.Proc, plan.Dev:
			w.made[op.Path] = true
		case plan.LinkTo, plan.Seal:
		default:
			w.bound[op.Path] = true
		}
	}
	for _, q := range p.Asked {
		if q.Origin.List == "protected" {
			w.secrets = append(w.secrets, q.Path)
		}
	}
	return w
}

// Expected takes what cannot be told apart for planned: an execution is stopped
// for what is not.
func (w *planned) Expected(m roots.Mount, n int) bool {
	switch {
	case w.made[m.Point], w.bound[m.Point] && n == 1, w.reached.HadMount(m):
		return true
	case host.Beneath(m.Point, "/dev"), host.Beneath(m.Point, "/proc"):
		return true
	case !w.bound[m.Point]:
		return false
	}
	t, ok := w.reached.Tree(m.Point)
	return !ok || t.Shows(m)
}

// Own knows a mask by what bubblewrap mounts: a tmpfs, or a file of one; and what the
// host had there itself lies beneath it. Only a pin is not read-only by its own.
func (w *planned) Own(m roots.Mount, n int) (own, readOnly bool) {
	if dir, mask := w.masks[m.Point]; mask {
		return m.FSType == "tmpfs" && m.ReadOnly && (m.Root == "/") == dir && !w.reached.HadMount(m), true
	}
	return w.Expected(m, n), !w.pins[m.Point]
}

// Bare says that what the mask hid went with it, as the directory of an agent's socket
// goes when its user logs out: nothing is there to be seen, until something comes again.
func (w *planned) Bare(point string) bool {
	was, ok := w.places[point]
	if !ok {
		return false
	}
	bare := make(chan bool, 1)
	go func() { bare <- gone(point, was) }()
	late := time.NewTimer(2 * goneBound)
	defer late.Stop()
	select {
	case gone := <-bare:
		return gone
	case <-late.C: // a file system that hangs
		return false
	}
}

// goneBound is long for the moment between the kernel's taking a mount away and its
// taking the name away (rmdir(2)), in which it waits for every processor.
const goneBound = 100 * time.Millisecond

// gone says whether nothing is at a path, where something was that may be going just now.
func gone(path string, was host.ID) bool {
	for end := time.Now().Add(goneBound); ; time.Sleep(time.Millisecond) {
		var st unix.Stat_t
		err := unix.Lstat(path, &st)
		switch {
		case err == unix.ENOENT || err == unix.ENOTDIR:
			return true
		case err != nil || (host.ID{Dev: uint64(st.Dev), Ino: st.Ino}) != was || time.Now().After(end):
			return false
		}
	}
}

// Came gives what the host made during the run where nothing was when the view was built,
// so that no mask lies there: protected paths, and the sockets of services. A look that a
// file system holds up is given up, and is the last one until it has ended.
func (w *planned) Came() []roots.Loss {
	if len(w.plan.Later)+len(w.plan.Absent) == 0 || !w.looks.CompareAndSwap(false, true) {
		return nil
	}
	found := make(chan []roots.Loss, 1)
	go func() {
		found <- w.came()
		w.looks.Store(false)
	}()
	late := time.NewTimer(goneBound)
	defer late.Stop()
	select {
	case out := <-found:
		return out
	case <-late.C:
		return nil
	}
}

func (w *planned) came() (out []roots.Loss) {
	add := func(path string, counts func(kind uint32) bool) {
		var st unix.Stat_t
		if unix.Lstat(path, &st) == nil && counts(st.Mode&unix.S_IFMT) {
			out = append(out, roots.Loss{Path: path, How: "came during the run, and no mask lies on it"})
		}
	}
	for _, path := range w.plan.Later {
		add(path, func(kind uint32) bool { return kind == unix.S_IFSOCK })
	}
	for _, path := range w.plan.Absent {
		add(path, func(uint32) bool { return true })
	}
	return out
}

// Lost says what of the protected a mount of the host shows.
func (w *planned) Lost(m roots.Mount) []roots.Loss {
	if e := w.plan.At(m.Point).Effect; e != plan.ReadOnly && e != plan.ReadWrite {
		return nil
	}
	var out []roots.Loss
	for _, path := range w.secrets {
		if t, ok := w.reached.Tree(path); ok && t.Overlaps(m) {
			out = append(out, roots.Loss{Path: path, How: fmt.Sprintf("was mounted by the host at %q, where it is not masked, during the run", m.Point)})
		}
	}
	return out
}
