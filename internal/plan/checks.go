package plan

import (
	"sandboxd/internal/stage2/spec"
)

// Checks is what stage 2 must find from inside before anything runs: each root,
// mount, pin and host scratch is the inode that was planned, also one that was
// merged into the root around it; nothing protected is the host's inode. Two
// entries for one path come once.
func (p Plan) Checks() []spec.Check {
	l := newLookup(p)
	seen := map[string]bool{}
	var out []spec.Check
	add := func(c spec.Check) {
		if key := c.What + "\x00" + c.Path; !seen[key] {
			seen[key] = true
			out = append(out, c)
		}
	}
	for _, q := range p.Asked {
		v := l.at(q.Path)
		c := spec.Check{Path: q.Path, ID: q.Node.ID, List: q.Origin.name()}
		switch {
		case q.State == Absent || q.State == Barred:
			continue
		case q.Origin.List == listProtected:
			if c.What = "mask"; v.Effect == Masked && v.Op.Path != q.Path {
				c.Path, c.ID = v.Op.Path, v.Op.Node.ID // nothing can be looked up below a mask
			}
		case v.Effect != ReadOnly && v.Effect != ReadWrite:
			continue // covered, which the audit says
		default:
			c.What = "root"
			if q.Origin.List == listMounts {
				c.What = "mount"
			}
			if isDevice(q.Node.Kind) {
				c.Rdev = q.Node.Rdev
			}
		}
		add(c)
	}
	for _, op := range p.Ops {
		switch {
		case op.Class == Pin:
			add(spec.Check{Path: op.Path, What: "pin", ID: op.Node.ID, List: op.Origin.List})
		case (op.Class == MaskDir || op.Class == MaskFile) && op.Origin.List != listProtected && op.Path != "/proc/1":
			add(spec.Check{Path: op.Path, What: "mask", ID: op.Node.ID, List: op.Origin.List})
		}
	}
	return out
}

// Placeholders are the operations whose mount point must be made on the host.
func (p Plan) Placeholders() []Op {
	var out []Op
	for _, op := range p.Ops {
		if op.Placeholder {
			out = append(out, op)
		}
	}
	return out
}
