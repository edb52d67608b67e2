package explain

import (
	"fmt"
	"slices"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// hold compares the view with the host's own modes, which a jail never widens.
func (s Scene) hold(a *Answer, res host.Resolution) {
	if a.Effect != plan.ReadOnly && a.Effect != plan.ReadWrite {
		return
	}
	if res.Node.Kind == host.Denied {
		a.Read, a.Write = false, false
		a.HeldBack = "a directory on the way to it is closed to this user"
		return
	}
	if dir, n := s.closed(res.Path); dir != "" {
		a.Read, a.Write = false, false
		a.HeldBack = fmt.Sprintf("the directory %q on the way to it (mode %04o, uid %d) is closed to %s", dir, n.Mode&0o7777, n.UID, s.who())
		return
	}
	at, n := res.Path, res.Node
	if a.Missing != "" {
		at = host.Parent(a.Missing)
		n = s.Facts.Layout[at] // where it would be made
	}
	if a.Write && s.ReadOnly != nil && (n.Kind == host.Dir || n.Kind == host.File) && s.ReadOnly(at) {
		a.Write = false
		a.HeldBack = fmt.Sprintf("what is at %q is on a file system that the host has mounted read-only", at)
	}
	if a.Write && !s.permits(n, 2) {
		a.Write = false
		a.HeldBack = fmt.Sprintf("%q itself (mode %04o, uid %d) is not writable for %s", at, n.Mode&0o7777, n.UID, s.who())
	}
	if a.Read && a.Missing == "" && !s.permits(n, 4) {
		a.Read = false
		a.HeldBack = fmt.Sprintf("%q itself (mode %04o, uid %d) is not readable for %s", at, n.Mode&0o7777, n.UID, s.who())
	}
}

func (s Scene) who() string {
	if s.Facts.UID == 0 {
		return "uid 0 without capabilities, which every command of root's is"
	}
	return fmt.Sprintf("uid %d", s.Facts.UID)
}

// closed finds a directory on the way that the command cannot search. The view's own
// mount points count from the outermost grant on: above it the jail has directories of
// its own.
func (s Scene) closed(path string) (string, host.Node) {
	for dir := host.Parent(path); dir != "/"; dir = host.Parent(dir) {
		if s.Plan.At(dir).Effect == plan.None {
			break
		}
		if n, ok := s.Facts.Layout[dir]; ok && n.Kind == host.Dir && !s.permits(n, 1) {
			return dir, n
		}
	}
	return "", host.Node{}
}

// permits says whether the mode gives the command a right (4 read, 2 write, 1 search).
// Root's commands have no capabilities: uid 0 is judged like any other. An access
// control list can take away more, or give more to named users (acl(5)).
func (s Scene) permits(n host.Node, right uint32) bool {
	switch {
	case n.Kind < host.Dir:
		return true // nothing is known of it
	case int(n.UID) == s.Facts.UID:
		return n.Mode>>6&right != 0
	case slices.Contains(s.groups, int(n.GID)):
		return n.Mode>>3&right != 0
	}
	return n.Mode&right != 0
}
