package plan

import (
	"fmt"

	"sandboxd/internal/host"
)

// put adds a grant; of two for one region the stronger class takes it, and a
// private scratch beats a root at exactly its own place. Among equals the order
// of the policy's lists must not show, so the spelling decides.
func (b *builder) put(op Op) {
	old, ok := b.grants[op.Path]
	if ok && !stronger(op, old) {
		return
	}
	b.grants[op.Path] = op
}

func stronger(op, old Op) bool {
	if op.Class == ScratchTmpfs || old.Class == ScratchTmpfs {
		return op.Class == ScratchTmpfs
	}
	if op.Class != old.Class {
		return op.Class > old.Class
	}
	if op.Origin.Path != old.Origin.Path {
		return op.Origin.Path < old.Origin.Path
	}
	return op.Origin.Index < old.Origin.Index
}

// grantRoots adds the policy's roots. One at or below /proc or /dev could only
// be covered by the fresh file system there, so it is left out.
func (b *builder) grantRoots() *Refusal {
	for _, e := range b.roots {
		if b.f.OS == "linux" && (host.Beneath(e.res.Path, "/proc") || host.Beneath(e.res.Path, "/dev")) {
			continue
		}
		b.put(Op{Path: e.res.Path, Class: e.class, Origin: e.origin, Node: e.res.Node})
	}
	return nil
}

// grantScratch adds the scratch.
func (b *builder) grantScratch() *Refusal {
	op := Op{Path: b.scratch.res.Path, Class: b.scratch.class, Origin: b.scratch.origin, Node: b.scratch.res.Node}
	if op.Class == ScratchTmpfs {
		op.Size, op.Perms, op.Node = b.tmpfsSize(), 0o1777, host.Node{Kind: host.Dir}
	}
	b.put(op)
	return nil
}

// grantBase adds the system directories that exist. Under a host view they are
// what stays read-only; the merge drops them where "/" itself is read-only. One
// inside another ("/bin" through its link, "/etc/resolv.conf") needs no grant of
// its own, and with one it would narrow a policy that names the outer directory.
func (b *builder) grantBase() *Refusal {
	var ops []Op
	base := map[string]bool{}
	for _, d := range autoDirs(b.f, b.hostView) {
		res := b.f.Layout.Resolve(d.Path)
		if res.Err != nil || !exists(res.Node.Kind) || systemless(res.Path) {
			continue
		}
		if _, closed := b.closedDir(res.Path); closed {
			continue
		}
		base[res.Path] = true
		ops = append(ops, Op{Path: res.Path, Class: SystemRO, Node: res.Node,
			Origin: Origin{List: listBase, Index: -1, Path: d.Path, Why: d.Why}})
	}
	for _, op := range ops {
		inner := false
		ancestors(op.Path, func(dir string) bool { inner = inner || base[dir]; return !inner })
		if !inner {
			b.put(op)
		}
	}
	return nil
}

// systemless are places that no system directory's link may open: the whole
// host, and what the jail has fresh or not at all.
func systemless(path string) bool {
	switch path {
	case "/", "/proc", "/sys", "/home", "/root", "/run", "/tmp", "/var", "/var/tmp":
		return true
	}
	return host.Beneath(path, "/proc") || host.Beneath(path, "/sys")
}

// exists says whether there is an inode.
func exists(k host.Kind) bool { return k >= host.Dir }

// merge drops each grant that the region around it already gives: bubblewrap's
// cost is quadratic in the number of binds.
func (b *builder) merge() *Refusal {
	for _, op := range sorted(b.grants) { // parents first, so above() sees merged ones
		if b.above(op.Path).Class.access() == op.Class.access() && op.Class != ScratchTmpfs && !isDevice(op.Node.Kind) {
			delete(b.grants, op.Path)
		}
	}
	return nil
}

// addMounts turns the explicit mounts into operations.
func (b *builder) addMounts() *Refusal {
	for _, m := range b.mounts {
		b.explicit[m.res.Path] = Op{Path: m.res.Path, Class: m.class, Origin: m.origin, Node: m.res.Node}
	}
	return nil
}

// addLinks reproduces each link that was passed on the way to a granted path or
// to the cwd, where its place in the view is empty, so that the spelling which
// the broker used works inside too.
func (b *builder) addLinks() *Refusal {
	for _, e := range b.roots {
		b.linkHops(e.res)
	}
	b.linkHops(b.scratch.res)
	for _, m := range b.mounts {
		b.linkHops(m.res)
	}
	for _, d := range autoDirs(b.f, b.hostView) {
		if res := b.f.Layout.Resolve(d.Path); exists(res.Node.Kind) && res.Err == nil && !systemless(res.Path) {
			b.linkHops(res)
		}
	}
	if b.f.Cwd != "" {
		if res := b.f.Layout.Resolve(b.f.Cwd); res.Err == nil && b.region(res.Path).Class.access() != accessNone {
			b.linkHops(res)
		}
	}
	return nil
}

// linkHops adds the links of one resolution.
func (b *builder) linkHops(res host.Resolution) {
	for _, hop := range res.Links {
		if _, hidden := b.protectedAbove(hop.Path); hidden {
			continue
		}
		c := b.region(hop.Path).Class
		if c != RootTmpfs && c != ScratchTmpfs {
			continue
		}
		if b.f.OS == "linux" && (host.Beneath(hop.Path, "/proc") || host.Beneath(hop.Path, "/dev")) {
			continue // the fresh file systems bring their own
		}
		b.grants[hop.Path] = Op{Path: hop.Path, Class: LinkTo, Target: hop.Target, Node: host.Node{Kind: host.Link, Target: hop.Target},
			Origin: Origin{List: listLink, Index: -1, Path: hop.Path, Why: fmt.Sprintf("so that %q leads where it does on the host", hop.Path)}}
	}
}

// index notes every place that has a mount point.
func (b *builder) index() *Refusal {
	for path := range b.grants {
		b.occupied.add(path)
	}
	for path := range b.explicit {
		b.occupied.add(path)
	}
	return nil
}
