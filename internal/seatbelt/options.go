package seatbelt

import (
	"fmt"
	"strings"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// Options is what the profile depends on besides the plan.
type Options struct {
	NetFull bool
	// Layout is the one that the plan was made from: no path that has a symbolic
	// link as a component is granted, and links above protected paths are held.
	Layout host.Layout
	// Helper is the physical path of the helper's image, which stage 2 is executed
	// from. Seatbelt cannot execute a descriptor, so it must not be writable.
	Helper string
	// UserDirs are the user's own temporary and cache directories, physical: Apple's
	// developer tools write there whatever TMPDIR says.
	UserDirs []string
	// Witness is a path that must be denied whatever the policy grants, "" for none.
	// Stage 2 tries it.
	Witness string
}

// alwaysLinks are links on every macOS host, known without a layout. A profile that
// names one is accepted and grants nothing.
var alwaysLinks = []string{"/tmp", "/var", "/etc"}

// usable says why a path must not be granted, or "".
func usable(path string, layout host.Layout) string {
	switch {
	case !strings.HasPrefix(path, "/") || host.Clean("/", path) != path:
		return "it is not absolute and clean"
	case strings.IndexByte(path, 0) >= 0:
		return "it holds a NUL byte"
	}
	if host.Beneath(path, dataVolume) {
		return fmt.Sprintf("a jail sees nothing of %q, whose places have usual names without it (\"/home\", which leads there, holds nothing of macOS's own)", dataVolume)
	}
	for dir := path; dir != "/"; dir = host.Parent(dir) {
		if n, ok := layout[dir]; ok && n.Kind == host.Link {
			return fmt.Sprintf("%q is a symbolic link, and Seatbelt compares resolved paths", dir)
		}
	}
	for _, link := range alwaysLinks {
		if n, ok := layout[link]; ok && n.Kind != host.Missing {
			continue // the layout knows better
		}
		if host.Beneath(path, link) {
			return fmt.Sprintf("%q is a symbolic link to %q on macOS", link, "/private"+link)
		}
	}
	return ""
}

// check refuses what must not become a profile.
func check(p plan.Plan, o Options) error {
	for _, op := range p.Ops {
		if !grants(op.Class) && op.Class != plan.Pin {
			continue
		}
		if why := usable(op.Path, o.Layout); why != "" {
			return fmt.Errorf("cannot grant %q of %s: %s; name it by the path that it resolves to", op.Path, op.Origin.List, why)
		}
		if op.Path == "/dev" && writes(op.Class) {
			return fmt.Errorf("cannot grant writing to all of %q: the host's disks are there; name each device under mounts", op.Path)
		}
	}
	for _, q := range p.Asked { // also one that a wider grant has taken up
		if q.Origin.List != listProtected && q.State == plan.Planned && host.Beneath(q.Path, dataVolume) {
			return fmt.Errorf("cannot grant %q of %s: %s; take it out of the policy", q.Origin.Path, q.Origin.List, usable(q.Path, o.Layout))
		}
	}
	for _, path := range o.UserDirs {
		if why := usable(path, o.Layout); why != "" {
			return fmt.Errorf("cannot grant the user's directory %q: %s", path, why)
		}
	}
	return checkHelper(p, o)
}

// checkHelper refuses a helper that a command could replace, or could not read.
func checkHelper(p plan.Plan, o Options) error {
	if o.Helper == "" {
		return nil
	}
	if why := usable(o.Helper, o.Layout); why != "" {
		return fmt.Errorf("cannot execute the helper %q in the jail: %s", o.Helper, why)
	}
	for _, dir := range o.UserDirs {
		if host.Beneath(o.Helper, dir) {
			return writableHelper(o.Helper, dir)
		}
	}
	switch v := p.At(o.Helper); v.Effect {
	case plan.ReadWrite, plan.Private:
		return writableHelper(o.Helper, v.Op.Path)
	case plan.Masked:
		return fmt.Errorf("cannot execute the helper %q in the jail: %q hides it; install the helper elsewhere", o.Helper, v.Op.Path)
	}
	return nil
}

func writableHelper(helper, dir string) error {
	return fmt.Errorf("cannot run with the helper at %q: it lies in the writable %q, where a command could replace it; install it elsewhere", helper, dir)
}

// grants says whether a class opens something.
func grants(c plan.Class) bool {
	switch c {
	case plan.SystemRO, plan.Readable, plan.MountRO, plan.Writable, plan.ScratchPath, plan.ScratchTmpfs, plan.MountRW:
		return true
	}
	return false
}

func writes(c plan.Class) bool {
	switch c {
	case plan.Writable, plan.ScratchPath, plan.ScratchTmpfs, plan.MountRW:
		return true
	}
	return false
}
