package plan

import (
	"sandboxd/internal/host"
)

// checkOverlaps asks the decoder's rules again of the resolved paths. Otherwise a
// mount that reaches into a protected directory through a link would land after
// the mask and re-expose it.
func (b *builder) checkOverlaps() *Refusal {
	seen := map[string]Origin{}
	byInode := map[host.ID]entry{}
	under := map[string]Origin{} // every parent of a protected path
	writable := map[string]Origin{}
	spelled := map[string]bool{}
	for _, e := range b.protected {
		spelled[e.origin.Path] = true
		upward(under, e.res.Path, e.origin)
		if e.res.Node.ID != (host.ID{}) && !e.alias {
			byInode[e.res.Node.ID] = e
		}
	}
	for _, e := range b.roots {
		if e.class == Writable {
			upward(writable, e.res.Path, e.origin)
		}
		if r := sameInode(e, byInode); r != nil {
			return r
		}
	}
	for _, e := range append(b.roots[:len(b.roots):len(b.roots)], b.scratch) {
		if r := b.hiddenBreach(e, spelled); r != nil {
			return r
		}
	}
	for _, m := range b.mounts {
		if r := forbiddenPlace(m.entry); r != nil {
			return r
		}
		if other, twice := seen[m.res.Path]; twice {
			return refuse(m.origin, "it is the same place as %s %q: both are %q; leave one out", other.name(), other.Path, m.res.Path)
		}
		seen[m.res.Path] = m.origin
		if o, ok := under[m.res.Path]; ok {
			return refuse(m.origin, "as %s it covers %s %q; a mount cannot re-open what is protected: name something narrower", both(m.origin.Path, m.res.Path), o.name(), o.Path)
		}
		if o, ok := b.protectedAbove(m.res.Path); ok {
			return refuse(m.origin, "as %s it lies under %s %q; a mount cannot re-open what is protected: take one of the two out", both(m.origin.Path, m.res.Path), o.name(), o.Path)
		}
		if o, ok := writable[m.res.Path]; ok && m.class == MountRO {
			return refuse(m.origin, "as %s it is read-only at or above %s %q, which could then not be written; name something narrower", both(m.origin.Path, m.res.Path), o.name(), o.Path)
		}
		if r := sameInode(m.entry, byInode); r != nil {
			return r
		}
	}
	return nil
}

// hiddenBreach refuses a root that only a link takes below a protected path. By its
// own spelling it may stand there and is masked; through a link it grants what
// whoever wrote the list did not see is protected.
func (b *builder) hiddenBreach(e entry, spelled map[string]bool) *Refusal {
	at, ok := b.protectedPath(e.res.Path)
	open := spelled[e.origin.Path]
	ancestors(e.origin.Path, func(dir string) bool { open = open || spelled[dir]; return !open })
	if !ok || open {
		return nil
	}
	o := b.guarded[at]
	return refuse(e.origin, "as %s it lies under %s %s; a root cannot re-open what is protected: take one of the two out", both(e.origin.Path, e.res.Path), o.name(), both(o.Path, at))
}

// upward notes an origin for a path and all its parents, the first one stays.
func upward(m map[string]Origin, path string, o Origin) {
	for {
		if _, ok := m[path]; ok {
			return
		}
		m[path] = o
		if path == "/" {
			return
		}
		path = host.Parent(path)
	}
}

// protectedAbove finds the protected entry at or above a path.
func (b *builder) protectedAbove(path string) (Origin, bool) {
	at, ok := b.protectedPath(path)
	return b.guarded[at], ok
}

// protectedPath is the canonical path of that entry.
func (b *builder) protectedPath(path string) (string, bool) {
	for {
		if _, ok := b.guarded[path]; ok {
			return path, true
		}
		if path == "/" {
			return "", false
		}
		path = host.Parent(path)
	}
}

// sameInode refuses a grant that is a protected inode under another name: a hard
// link, or a directory that the host has mounted twice. The mask is on the name.
func sameInode(e entry, byInode map[host.ID]entry) *Refusal {
	other, ok := byInode[e.res.Node.ID]
	if !ok || other.res.Path == e.res.Path || e.res.Node.ID == (host.ID{}) {
		return nil
	}
	return refuse(e.origin, "%q is the same inode as %s %q under another name, so it would show what is protected; take one of the two out", e.res.Path, other.origin.name(), other.origin.Path)
}

// forbiddenPlace refuses mounts over what every jail has fresh.
func forbiddenPlace(e entry) *Refusal {
	path := e.res.Path
	switch {
	case path == "/", path == "/proc", path == "/dev", path == "/sys":
	case host.Beneath(path, "/proc"), host.Beneath(path, "/sys"):
	default:
		return nil
	}
	return refuse(e.origin, "it leads to %q; nothing may be mounted at \"/\", \"/proc\", \"/dev\" or \"/sys\", nor below \"/proc\" or \"/sys\": name a root instead, or leave it out", path)
}
