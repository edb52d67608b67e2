package landlock

import (
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/stage2/spec"
)

// Options is what the rules depend on besides the plan.
type Options struct {
	ABI          int      // of the host's kernel; 0 turns Landlock off
	Reason       string   // why ABI is 0
	Jailed       bool     // bubblewrap makes the plan's mounts
	DenyNet      bool     // the policy's network is not full
	NestedUserns bool     // --allow-nested-userns
	Needs        []string // not Jailed: what the command itself needs to be read, as its program
}

// Rules says what ruleset stage 2 has to build for a plan.
//
// In a jail the whole view may be read: the mounts narrowed it, and they alone know
// the masks. Without one only the base view, the readable roots and the command's
// needs may be. A later rule never takes anything away: grants unite.
func Rules(p plan.Plan, o Options) spec.Landlock {
	if o.ABI < 1 {
		return spec.Landlock{Reason: o.Reason}
	}
	b := builder{seen: map[string]spec.Access{}}
	if o.Jailed {
		b.add("/", spec.AccessRead, false)
	} else {
		b.degraded(o.Needs)
	}
	masks := map[string]bool{}
	for _, op := range p.Ops {
		masks[op.Path] = masks[op.Path] || op.Class == plan.MaskDir || op.Class == plan.MaskFile
	}
	for _, op := range p.Ops {
		if !o.Jailed || !under(masks, op) {
			b.operation(op, o.Jailed)
		}
	}
	return spec.Landlock{
		Enabled:      true,
		Rules:        b.rules,
		DenyNet:      o.DenyNet,
		Scope:        true,
		NestedUserns: o.NestedUserns,
		NameLacking:  !o.Jailed,
	}
}

// under says whether a mask above hides what an operation gives: there is nothing to
// open then. Explicit mounts come after the masks.
func under(masks map[string]bool, op plan.Op) bool {
	if op.Class == plan.MountRO || op.Class == plan.MountRW {
		return false
	}
	for dir := op.Path; ; dir = host.Parent(dir) {
		if masks[dir] {
			return true
		}
		if dir == "/" {
			return false
		}
	}
}

type builder struct {
	rules []spec.Rule
	seen  map[string]spec.Access
}

// add leaves out a rule that stands already: each costs an open.
func (b *builder) add(path string, a spec.Access, optional bool) {
	if b.seen[path] == a {
		return
	}
	b.seen[path] = a
	b.rules = append(b.rules, spec.Rule{Path: path, Access: a, Optional: optional})
}

func (b *builder) operation(op plan.Op, jailed bool) {
	switch op.Class {
	case plan.Writable, plan.ScratchPath:
		b.add(op.Path, spec.AccessWrite, false)
	case plan.ScratchTmpfs:
		// Without the mount this path is the account's real /tmp.
		if jailed {
			b.add(op.Path, spec.AccessWrite, false)
		}
	case plan.MountRW:
		b.add(op.Path, mountAccess(op), false)
	case plan.MountRO:
		b.add(op.Path, spec.AccessConnect, false)
	case plan.Dev:
		if jailed {
			b.devices(jailDevices)
		}
	case plan.SystemRO, plan.Readable:
		if !jailed {
			b.add(op.Path, spec.AccessRead, true)
		}
	}
}

func mountAccess(op plan.Op) spec.Access {
	if op.Node.Kind == host.CharDevice || op.Node.Kind == host.BlockDevice {
		return spec.AccessDevice
	}
	return spec.AccessWrite
}

func (b *builder) degraded(needs []string) {
	for _, path := range needs {
		b.add(path, spec.AccessRead, true)
	}
	for _, path := range degradedProc {
		b.add(path, spec.AccessRead, true)
	}
	b.devices(degradedDevices)
}

// devices adds rules that may find nothing: a container's /dev is often poorer,
// and /dev/ptmx is a link into /dev/pts in bubblewrap's.
func (b *builder) devices(list []device) {
	for _, d := range list {
		b.add(d.path, d.access, true)
	}
}
