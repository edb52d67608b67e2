// Package explain says what a plan lets a command do at a path, which entry of the
// policy decides it, and what to change to allow more. It is pure: it reads a plan and
// the facts that the plan was made from.
//
// It enforces nothing and proves nothing: what the kernel makes of the plan is for
// stage 2 and for self-test. File modes are judged as the facts show them; access
// control lists, and what else a file system decides by itself, are not known to it.
package explain

import (
	"slices"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// Scene is a policy as it is planned on a host.
type Scene struct {
	Policy protocol.Policy
	Facts  host.Facts
	Plan   plan.Plan
	Audit  plan.Audit
	groups []int

	// ReadOnly says whether the host has what is at a path on a mount that it made
	// read-only; nil: it is not known. A jail's mounts never widen that.
	ReadOnly func(path string) bool
}

// New plans a policy; groups are the caller's supplementary ones, which a jail keeps.
// The error is a *plan.Refusal.
func New(p protocol.Policy, f host.Facts, groups []int) (Scene, error) {
	pl, err := plan.Build(p, f)
	if err != nil {
		return Scene{}, err
	}
	return Scene{Policy: p, Facts: f, Plan: pl, Audit: plan.AuditOf(pl, p).On(f), groups: append([]int{f.GID}, groups...)}, nil
}

// Decider is what of the policy, or besides it, settles a path.
type Decider struct {
	List  string // of the policy, or of the view: "base", "service-socket", "root-secret", "kernel", "proc", "dev", "pin"; "" for nothing
	Index int    // in the policy's list, else -1
	Path  string // as spelled there
	Why   string // for what is no entry of the policy
}

// Answer is what a command can do at one path.
type Answer struct {
	Path     string // physical: no component of it is a link
	Effect   plan.Effect
	Class    plan.Class
	Read     bool
	Write    bool
	Decider  Decider
	Region   string // the path that the decider covers
	Kind     host.Kind
	Missing  string // the first component that the host does not have, or ""
	HeldBack string // why the host's own modes allow less than the view, or ""
	Notes    []string
}

// At answers for one path, which the layout must hold.
func (s Scene) At(path string) Answer {
	res := s.Facts.Layout.Resolve(path)
	v := s.Plan.At(res.Path)
	a := Answer{Path: res.Path, Effect: v.Effect, Class: v.Op.Class, Region: v.Op.Path, Kind: res.Node.Kind, Missing: res.Missing}
	a.Decider = s.decider(v, res.Path)
	switch v.Effect {
	case plan.ReadOnly:
		a.Read = true
	case plan.ReadWrite:
		a.Read, a.Write = true, true
	case plan.Private:
		a.Read, a.Write = s.private(v, res)
	}
	a.note(s, v)
	if res.Err != nil { // it names nothing, in a jail neither
		a.Path, a.Read, a.Write = path, false, false
		a.HeldBack = "no such path can be: " + res.Err.Error()
		return a
	}
	s.hold(&a, res)
	return a
}

// Asked is At for a path and the name that somebody has for it. A link that leads to what
// the jail has need not be there itself.
func (s Scene) Asked(name, path string) Answer {
	a := s.At(path)
	if name != path && a.Effect != plan.None && s.lacks(name) {
		a.Notes = append(a.Notes, "the jail has no "+name+", a link by which the host leads there: use "+a.Path)
	}
	return a
}

// lacks says whether the jail has nothing of the host's at a name, and so no link of its.
func (s Scene) lacks(name string) bool {
	v := s.Plan.At(name)
	switch v.Effect {
	case plan.None, plan.Masked:
		return true
	case plan.Private: // /proc and most of /dev have the same links everywhere
		return v.Op.Class == plan.ScratchTmpfs || host.Beneath(name, "/dev/shm")
	}
	return false
}

// decider names the operation in the policy's terms.
func (s Scene) decider(v plan.View, path string) Decider {
	o := v.Op.Origin
	switch {
	case v.Index < 0 || v.Op.Class == plan.RootTmpfs:
		return Decider{Index: -1}
	case v.Op.Class == plan.Pin:
		// Bound onto itself to stay in its place; what lets it be written lies above.
		return s.beneathPin(v)
	}
	return s.nearest(Decider{o.List, o.Index, o.Path, o.Why}, v.Op.Path, path)
}

// nearest is the entry to name where one placeholder stands for several that are
// missing: the one that names the path, or what is above it.
func (s Scene) nearest(d Decider, region, path string) Decider {
	if d.List != "protected" || d.Path == region || host.Beneath(path, d.Path) {
		return d
	}
	for i, p := range s.Policy.Protected {
		if host.Beneath(path, p) {
			return Decider{d.List, i, p, d.Why}
		}
	}
	return d
}

// beneathPin is the grant that a pin repeats.
func (s Scene) beneathPin(v plan.View) Decider {
	found := Decider{Index: -1}
	for _, op := range s.Plan.Ops[:v.Index] {
		if op.Class != plan.Pin && host.Beneath(v.Op.Path, op.Path) {
			found = Decider{op.Origin.List, op.Origin.Index, op.Origin.Path, op.Origin.Why}
		}
	}
	return found
}

// private says what can be done in the jail's own file systems.
func (s Scene) private(v plan.View, res host.Resolution) (read, write bool) {
	path := res.Path
	switch v.Op.Class {
	case plan.ScratchTmpfs:
		return true, true
	case plan.Dev:
		name := path[len(v.Op.Path):]
		return path == "/dev" || host.Beneath(path, "/dev/shm") || devices(name),
			host.Beneath(path, "/dev/shm") || devices(name) && name != "/pts"
	}
	// A /proc is the kernel's: what it lacks here it lacks there, and modes are the same.
	return res.Missing == "" && res.Node.Kind != host.Denied && s.permits(res.Node, 4), false
}

// terminal is a device of bubblewrap's --dev that no command can open: it has no
// controlling terminal (tty(4): ENXIO).
const terminal = "/dev/tty"

// devices are what bubblewrap's --dev makes (bwrap(1)), but for the terminal.
func devices(name string) bool {
	switch name {
	case "/null", "/zero", "/full", "/random", "/urandom", "/ptmx", "/pts", "/pts/ptmx", "/fd", "/stdin", "/stdout", "/stderr":
		return true
	}
	return false
}

// note says what read and write do not.
func (a *Answer) note(s Scene, v plan.View) {
	add := func(text string) { a.Notes = append(a.Notes, text) }
	switch {
	case v.Op.Class == plan.ScratchTmpfs:
		add("it is the jail's own: empty at the start, gone at the end, and not the host's " + v.Op.Path)
	case v.Op.Class == plan.Dev && a.Path == terminal:
		add("a command has no controlling terminal, so this cannot be opened")
	case v.Op.Class == plan.Proc:
		add("it is the jail's own /proc, which shows the jail's processes only")
	case v.Op.Class == plan.Dev && !a.Read:
		add("the jail has a /dev of its own with the standard devices only")
	case v.Effect == plan.Masked && v.Op.Content == "":
		add("something empty and read-only stands in its place")
	}
	for _, op := range s.Plan.Ops {
		if op.Class == plan.Pin && op.Path == a.Path {
			add("it cannot be renamed or removed: it holds something protected")
		}
	}
	if v.Effect == plan.None && slices.ContainsFunc(s.Plan.Ops, func(op plan.Op) bool { return op.Path != a.Path && host.Beneath(op.Path, a.Path) }) {
		add("the jail has a read-only directory of that name, with nothing in it but the way to what an entry below it names")
	}
	if a.Missing != "" && (v.Effect == plan.ReadOnly || v.Effect == plan.ReadWrite) {
		add("it does not exist on the host yet")
	}
}
