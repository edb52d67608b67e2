package plan

import (
	"sandboxd/internal/host"
	"sandboxd/protocol"
)

// builder collects a plan. Its steps have one order, that of Build.
type builder struct {
	p protocol.Policy
	f host.Facts

	roots     []entry // writable and readable roots that exist
	scratch   entry
	protected []entry
	mounts    []mountEntry

	hostView bool
	home     string            // physical HOME
	named    prefixes          // what the policy's roots, scratch and mounts name, closed upwards
	guarded  map[string]Origin // canonical protected paths
	grants   map[string]Op
	masks    map[string]Op
	explicit map[string]Op
	occupied prefixes // everything that has a mount point, closed upwards
	skips    []Skip
	refused  *Refusal // found while masking
	asked    []Asked
	later    []string
	absent   []string
}

// entry is one path of the policy, resolved.
type entry struct {
	origin Origin
	res    host.Resolution
	class  Class
	alias  bool // another name of a protected path
}

// mountEntry is an explicit mount.
type mountEntry struct {
	entry
	mount protocol.Mount
}

// Build plans a policy on a host. The error is a *Refusal. The cost is linear in
// the number of paths times their depth.
func Build(p protocol.Policy, f host.Facts) (Plan, error) {
	b := &builder{
		p: p, f: f,
		named: prefixes{}, guarded: map[string]Origin{}, occupied: prefixes{},
		grants: map[string]Op{}, masks: map[string]Op{}, explicit: map[string]Op{},
	}
	steps := []func() *Refusal{
		b.resolveRoots, b.resolveScratch, b.resolveProtected, b.resolveMounts,
		b.checkOverlaps, b.checkCovered,
		b.grantRoots, b.grantScratch, b.grantBase, b.grantKernel, b.merge, b.addMounts, b.coverKernel,
		b.addLinks, b.index,
		b.maskProtected, b.maskPlaces, b.dropNested, b.addPins, b.sayNarrow, b.sayDoubts,
	}
	for _, step := range steps {
		if r := step(); r != nil {
			return Plan{}, r
		}
	}
	return b.assemble(), nil
}

// assemble puts the operations into the order that is their precedence:
// bubblewrap applies them in this order, so a grant after a mask would fail open.
func (b *builder) assemble() Plan {
	pl := Plan{Skips: b.skips, HostView: b.hostView, Asked: b.asked, Later: b.later, Absent: b.absent, Scratch: b.scratch.res.Path}
	if !b.hostView {
		pl.Ops = append(pl.Ops, Op{Path: "/", Class: RootTmpfs, Origin: Origin{List: listBase, Index: -1, Path: "/", Why: "an empty root"}})
	}
	pl.Ops = append(pl.Ops, sorted(b.grants)...)
	mounts := sorted(b.explicit)
	if b.f.OS == "linux" {
		pl.Ops = append(pl.Ops, b.procAndDev()...)
		// /dev is remounted read-only when its devices are in place, so they
		// belong to it and not to the mounts at the end.
		var rest []Op
		for _, op := range mounts {
			if host.Beneath(op.Path, "/dev") {
				pl.Ops = append(pl.Ops, op)
			} else {
				rest = append(rest, op)
			}
		}
		mounts = rest
	}
	pl.Ops = append(pl.Ops, sorted(b.masks)...)
	pl.Ops = append(pl.Ops, mounts...)
	if !b.hostView {
		pl.Ops = append(pl.Ops, Op{Path: "/", Class: Seal, Origin: Origin{List: listBase, Index: -1, Path: "/", Why: "no writable directory outside the grants"}})
	}
	return pl
}

// procAndDev are the two fresh kernel file systems.
func (b *builder) procAndDev() []Op {
	return []Op{
		{Path: "/proc", Class: Proc, Origin: Origin{List: listProc, Index: -1, Path: "/proc", Why: "only the jail's processes; read-only because a root caller could write /proc/sys"}},
		{Path: "/dev", Class: Dev, Size: b.tmpfsSize(), Origin: Origin{List: listDev, Index: -1, Path: "/dev", Why: "standard devices only"}},
	}
}

// tmpfsSize bounds each tmpfs of the jail: the policy's memory ceiling, else a
// quarter of RAM, else 256 MiB where RAM is not known.
func (b *builder) tmpfsSize() uint64 {
	if b.p.Limits.MemBytes != 0 {
		return b.p.Limits.MemBytes
	}
	if b.f.TotalRAM >= 4 {
		return b.f.TotalRAM / 4
	}
	return 256 << 20
}

// skip notes what the plan cannot give.
func (b *builder) skip(tag, reason string) { b.skips = append(b.skips, Skip{tag, reason}) }

// region is the grant that decides the view of a path before any mask: the
// deepest one at or above it. Without one it is the empty root.
func (b *builder) region(path string) Op {
	if op, ok := b.grants[path]; ok {
		return op
	}
	found := Op{Path: "/", Class: RootTmpfs}
	ancestors(path, func(dir string) bool {
		op, ok := b.grants[dir]
		if ok {
			found = op
		}
		return !ok
	})
	return found
}

// above is the region around a path, the path's own grant left out.
func (b *builder) above(path string) Op {
	if path == "/" {
		return Op{Path: "/", Class: RootTmpfs}
	}
	return b.region(host.Parent(path))
}
