package plan

import (
	"fmt"
	"hash/fnv"

	"sandboxd/internal/host"
	"sandboxd/protocol"
)

// lookup answers what At does, for many paths of one plan, in time that depends
// on a path's depth only.
type lookup struct {
	p    Plan
	last map[string]int // region -> its last operation
	open map[string]int // path -> last operation strictly beneath it that is no mask
}

func newLookup(p Plan) lookup {
	l := lookup{p, map[string]int{}, map[string]int{}}
	for i, op := range p.Ops {
		if op.Class == Seal {
			continue
		}
		l.last[op.Path] = i
		if op.Class != MaskDir && op.Class != MaskFile {
			ancestors(op.Path, func(dir string) bool { l.open[dir] = i; return true })
		}
	}
	return l
}

// at is the effective view of a path.
func (l lookup) at(path string) View {
	best := -1
	for dir := path; ; dir = host.Parent(dir) {
		if i, ok := l.last[dir]; ok && i > best {
			best = i
		}
		if dir == "/" {
			break
		}
	}
	if best < 0 {
		return View{Index: -1}
	}
	op := l.p.Ops[best]
	return sealed(l.p, View{op.Class.effect(), op, best})
}

// Narrowed lists what is read-only inside something writable: without its mount the
// command could write it.
func (p Plan) Narrowed() map[string]bool {
	l, out := newLookup(p), map[string]bool{}
	for i, op := range p.Ops {
		if op.Class.access() == accessRead && op.Path != "/" && l.at(op.Path).Index == i && l.at(host.Parent(op.Path)).Effect == ReadWrite {
			out[op.Path] = true
		}
	}
	return out
}

// AuditOf replays a plan and counts the policy's own paths whose effective view
// is the one that the policy asked for, so that a number falls when a later
// operation undoes an earlier one. It proves the plan, not its execution.
func AuditOf(p Plan, pol protocol.Policy) Audit {
	a := Audit{Scratch: "none", Base: "minimal", Skips: append([]Skip(nil), p.Skips...), Digest: p.digest()}
	if p.HostView {
		a.Base = "host-view"
	}
	l := newLookup(p)
	for _, q := range p.Asked {
		a.count(l, q, pol)
	}
	for i, op := range p.Ops {
		if op.Class == Pin && l.at(op.Path).Index == i {
			a.Pin++
		}
	}
	return a
}

// count judges one path of the policy.
func (a *Audit) count(l lookup, q Asked, pol protocol.Policy) {
	if q.Origin.List == listProtected {
		mask, absent := a.Mask, a.Absent
		a.countProtected(l, q)
		if q.Alias { // it must hold, but is no path of the policy
			a.Mask, a.Absent = mask, absent
		}
		return
	}
	if q.State == Absent {
		return
	}
	v := l.at(q.Path)
	switch q.Origin.List {
	case listReadable:
		a.RO += a.readOnly(v, q)
	case listWritable:
		a.RW += one(v.Effect == ReadWrite && !q.ReadOnly)
		if v.Op.Class == MountRO {
			a.skip("%s %q is not writable: %s %q, a read-only mount, covers it", q.Origin.name(), q.Origin.Path, v.Op.Origin.name(), v.Op.Origin.Path)
		}
	case listMounts:
		m := pol.Mounts[q.Origin.Index]
		if m.Access == protocol.ReadOnly {
			a.BindRO += a.readOnly(v, q)
		}
		a.BindRW += one(m.Access == protocol.ReadWrite && v.Effect == ReadWrite && !q.ReadOnly)
	case listScratch:
		if v.Op.Class == ScratchTmpfs {
			a.Scratch = protocol.ScratchTmpfs
		} else if pol.Scratch != protocol.ScratchTmpfs && v.Effect == ReadWrite && !q.ReadOnly {
			a.Scratch = "path"
		}
	}
}

// readOnly counts one path that is to be read only. A mount does not keep a device or a
// named pipe from being written, read-only or not (a device's is not even that, or it
// could not be opened): Landlock does.
func (a *Audit) readOnly(v View, q Asked) int {
	kind := q.Node.Kind
	if v.Effect == ReadOnly && (isDevice(kind) && v.Op.Path == q.Path || kind == host.Fifo) {
		a.byLandlock = append(a.byLandlock, q.Origin)
	}
	return one(v.Effect == ReadOnly)
}

// On is the audit on a host, as far as is known before stage 2 has run.
func (a Audit) On(f host.Facts) Audit {
	if f.OS == "linux" && f.LandlockABI == 0 {
		return a.WithoutLandlock()
	}
	return a
}

// WithoutLandlock is the audit where Landlock was not applied.
func (a Audit) WithoutLandlock() Audit {
	a.Skips = a.Skips[:len(a.Skips):len(a.Skips)]
	for _, o := range a.byLandlock {
		n := &a.RO
		if o.List == listMounts {
			n = &a.BindRO
		}
		*n--
		a.skip("%s %q is not read-only: without Landlock nothing keeps a command from writing a device or a named pipe whose mode lets it", o.name(), o.Path)
	}
	a.byLandlock = nil
	return a
}

// countProtected judges a protected path: nothing of it may show, at any depth.
func (a *Audit) countProtected(l lookup, q Asked) {
	v := l.at(q.Path)
	beneath, holed := l.open[q.Path]
	switch {
	case holed && beneath > v.Index:
		op := l.p.Ops[beneath]
		a.skip("%s %q is not masked: %s %q shows what lies beneath it", q.Origin.name(), q.Origin.Path, op.Origin.name(), op.Origin.Path)
	case v.Effect == Masked:
		a.Mask++
	case q.State == Barred, q.State == Absent && v.Effect != ReadWrite, q.State == Hidden && v.Effect != ReadWrite && v.Effect != ReadOnly:
		// No mask stands there, so none is counted: stage 2 verifies each one.
		a.Absent++
	default:
		a.skip("%s %q is not masked: %s %q shows it", q.Origin.name(), q.Origin.Path, v.Op.Origin.name(), v.Op.Origin.Path)
	}
}

func (a *Audit) skip(format string, args ...any) {
	a.Skips = append(a.Skips, Skip{listMounts, fmt.Sprintf(format, args...)})
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// String is the report's entry.
func (a Audit) String() string { return "mounts:" + a.Fields() }

// Fields is the entry without its tag, for the other platform's.
func (a Audit) Fields() string {
	return fmt.Sprintf("ro=%d,rw=%d,mask=%d,absent=%d,pin=%d,bind_ro=%d,bind_rw=%d,scratch=%s,base=%s,plan=%s",
		a.RO, a.RW, a.Mask, a.Absent, a.Pin, a.BindRO, a.BindRW, a.Scratch, a.Base, a.Digest)
}

// digest is for spotting change, not a check. Indices and inodes stay out of it:
// the order of a list and the machine do not change what is planned.
func (p Plan) digest() string {
	h := fnv.New64a()
	for _, op := range p.Ops {
		fmt.Fprintf(h, "%s %q %q %o %d %q %t\n", op.Class, op.Path, op.Target, op.Perms, op.Size, op.Content, op.Placeholder)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
