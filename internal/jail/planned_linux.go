package jail

import (
	"fmt"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
)

// planned tells the mounts of a plan from those that the host made during the run
// and that propagated into the jail. Nothing else uses the survey meanwhile.
type planned struct {
	plan    plan.Plan
	reached *roots.Reached
	points  []string        // mount points that must stay as they are
	bound   map[string]bool // paths at which something of the host is bound
	made    map[string]bool // paths at which the jail mounts something of its own
	masks   map[string]bool
	secrets []string // what is protected
}

func newPlanned(p plan.Plan, r *roots.Reached, points []string) *planned {
	w := &planned{plan: p, reached: r, points: points, bound: map[string]bool{}, made: map[string]bool{}, masks: map[string]bool{}}
	for _, op := range p.Ops {
		switch op.Class {
		case plan.MaskDir, plan.MaskFile:
			w.made[op.Path], w.masks[op.Path] = true, true
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

// Lost says what a mount of the host takes away. A mask is a mount of the jail's
// own, so what the host mounts at the same place goes beneath it.
func (w *planned) Lost(m roots.Mount) []roots.Loss {
	var out []roots.Loss
	for _, point := range w.points {
		if host.Beneath(point, m.Point) && (point != m.Point || !w.masks[point]) {
			out = append(out, roots.Loss{Path: point, How: fmt.Sprintf("was covered by a mount that the host made at %q during the run", m.Point)})
		}
	}
	if e := w.plan.At(m.Point).Effect; e != plan.ReadOnly && e != plan.ReadWrite {
		return out
	}
	for _, path := range w.secrets {
		if t, ok := w.reached.Tree(path); ok && t.Overlaps(m) {
			out = append(out, roots.Loss{Path: path, How: fmt.Sprintf("was mounted by the host at %q, where it is not masked, during the run", m.Point)})
		}
	}
	return out
}
