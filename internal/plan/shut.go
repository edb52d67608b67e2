package plan

import (
	"sandboxd/internal/host"
	"sandboxd/protocol"
)

// shutDir finds the directory on the way to a path whose mode keeps its own owner, this
// caller, out: a command can have closed it, so that what is behind it is not seen now,
// and open it again.
func (b *builder) shutDir(path string) (string, bool) {
	if b.f.OS != "linux" {
		return "", false // a name is denied there whatever it leads to
	}
	if b.f.UID == 0 {
		dir, closed := b.closedDir(path)
		return dir, closed && b.f.Layout[dir].UID == 0
	}
	res := b.f.Layout.Resolve(path)
	if res.Err != nil || res.Node.Kind != host.Denied {
		return "", false
	}
	dir := host.Parent(res.Path)
	for b.f.Layout[dir].Kind != host.Dir && dir != "/" {
		dir = host.Parent(dir)
	}
	n := b.f.Layout[dir]
	return dir, n.Kind == host.Dir && int(n.UID) == b.f.UID && n.Mode&0o100 == 0
}

// maskShut hides such a directory where the command could open it, with all that is to
// be hidden or kept read-only behind it. It says whether there is one.
func (b *builder) maskShut(o Origin, path string) bool {
	dir, shut := b.shutDir(path)
	if !shut {
		return false
	}
	around := b.shown(dir)
	_, explicit := b.explicit[around.Path]
	switch {
	case around.Class.access() != accessWrite:
	case explicit || around.Path == dir:
		b.refused = refuse(o, "%q on the way to it is closed to its own owner (mode %04o), and the command could open it again; make that directory searchable (chmod u+x)", dir, b.f.Layout[dir].Mode)
	default:
		b.setMask(Op{Path: dir, Class: MaskDir, Perms: 0o444, Origin: o, Node: b.f.Layout[dir]})
	}
	return true
}

// maskShutRoots does it for what is to be read-only and cannot be bound.
func (b *builder) maskShutRoots() {
	for _, q := range b.asked {
		if q.State == Absent && (q.Origin.List == listReadable || q.Origin.List == listMounts && b.p.Mounts[q.Origin.Index].Access == protocol.ReadOnly) {
			b.maskShut(q.Origin, q.Path)
		}
	}
}
