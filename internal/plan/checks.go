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
		if q.Origin.List == listProtected || v.Effect != ReadOnly && v.Effect != ReadWrite || !exists(q.Node.Kind) {
			continue // masks come from the operations; what is covered, the audit says
		}
		c := spec.Check{Path: q.Path, What: spec.CheckRoot, ID: q.Node.ID, List: q.Origin.name()}
		if q.Origin.List == listMounts {
			c.What = spec.CheckMount
		}
		if isDevice(q.Node.Kind) {
			c.Rdev = q.Node.Rdev
		}
		add(c)
	}
	for i, op := range p.Ops {
		c := spec.Check{Path: op.Path, ID: op.Node.ID, List: op.Origin.name()}
		switch {
		case l.at(op.Path).Index != i:
			continue
		case op.Class == Pin:
			c.What = spec.CheckPin
		case op.Placeholder:
			c.What = spec.CheckPlaceholder
		case op.Class == MaskDir || op.Class == MaskFile:
			c.What = spec.CheckMask
		default:
			continue
		}
		add(c)
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
