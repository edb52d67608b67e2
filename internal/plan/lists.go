package plan

import (
	"errors"
	"fmt"

	"sandboxd/internal/host"
	"sandboxd/protocol"
)

// resolve puts one path of the policy on the layout. absent means that there is
// nothing to bind, with the cause; a refusal is what no list tolerates.
func (b *builder) resolve(o Origin) (res host.Resolution, absent string, r *Refusal) {
	res = b.f.Layout.Resolve(o.Path)
	switch {
	case errors.Is(res.Err, host.ErrNotDir):
		return res, fmt.Sprintf("it lies below %q, which is not a directory", res.Path), nil
	case res.Err != nil:
		return res, "", refuse(o, "cannot resolve it: %v; name the path without that link", res.Err)
	case res.Node.Kind == host.Unknown:
		return res, "", refuse(o, "the host was never asked about %q; this is a defect of the survey, not of the policy", res.Path)
	case res.Node.Kind == host.Missing:
		return res, fmt.Sprintf("%q does not exist on this host", res.Missing), nil
	case res.Node.Kind == host.Denied:
		return res, fmt.Sprintf("this user may not search the directory that holds %q", res.Path), nil
	}
	if dir, closed := b.closedDir(res.Path); closed && b.f.Layout[dir].UID == 0 {
		return res, fmt.Sprintf("the directory %q is closed to its own owner (mode %04o); inside the jail uid 0 has no capability to pass it", dir, b.f.Layout[dir].Mode), nil
	} else if closed {
		return res, fmt.Sprintf("the directory %q belongs to another user and is closed to this one; inside the jail uid 0 has no capability to pass it", dir), nil
	}
	return res, "", nil
}

// closedDir finds a directory on the way to path that a root caller cannot pass:
// the jail's user namespace maps uid 0 alone, and capabilities over an inode need
// its owner to be mapped (user_namespaces(7)), for bubblewrap itself too.
func (b *builder) closedDir(path string) (string, bool) {
	if b.f.UID != 0 || b.f.OS != "linux" {
		return "", false
	}
	found, closed := "", false
	ancestors(path, func(dir string) bool {
		if n, ok := b.f.Layout[dir]; ok && n.Kind == host.Dir && !b.permits(n, 1) {
			found, closed = dir, true
		}
		return true
	})
	return found, closed
}

// permits says whether the mode gives a root caller without capabilities a right
// (4 read, 2 write, 1 search). Its own files are taken as writable: it can chmod them.
// A directory of its own that it may not search stops stage 2.
func (b *builder) permits(n host.Node, right uint32) bool {
	if n.UID == 0 {
		return right != 1 || n.Mode&0o100 != 0
	}
	if int(n.GID) == b.f.GID {
		return n.Mode>>3&right != 0
	}
	return n.Mode&right != 0
}

// resolveRoots resolves both lists of roots.
func (b *builder) resolveRoots() *Refusal {
	for i, path := range b.p.WritableRoots {
		o := Origin{List: listWritable, Index: i, Path: path}
		res, absent, r := b.resolve(o)
		if r != nil {
			return r
		}
		if absent != "" {
			return refuse(o, "%s; create it, or take it out of the policy", absent)
		}
		if r := b.checkOwner(o, res); r != nil {
			return r
		}
		if own := b.jailsOwn(res.Path); own != "" {
			return refuse(o, "the jail has a %s of its own, and the host's is not in it; take it out of the policy, or name a device under mounts", own)
		}
		b.addRoot(entry{origin: o, res: res, class: Writable})
	}
	for i, path := range b.p.ReadableRoots {
		o := Origin{List: listReadable, Index: i, Path: path}
		res, absent, r := b.resolve(o)
		if r != nil {
			return r
		}
		if absent != "" {
			b.asked = append(b.asked, Asked{Origin: o, Path: res.Path, Node: res.Node, State: Absent})
			continue
		}
		b.addRoot(entry{origin: o, res: res, class: Readable})
	}
	return nil
}

// jailsOwn says which tree of the jail's own covers a path: a writable root there
// would be write access that is not there.
func (b *builder) jailsOwn(path string) string {
	for _, own := range []string{"/proc", "/dev"} {
		if b.f.OS == "linux" && host.Beneath(path, own) {
			return own
		}
	}
	return ""
}

// checkOwner refuses a writable path that a root caller's command could not
// write: without capabilities uid 0 is an ordinary user to other users' files.
func (b *builder) checkOwner(o Origin, res host.Resolution) *Refusal {
	if b.f.UID != 0 || b.f.OS != "linux" || b.permits(res.Node, 2) {
		return nil
	}
	return refuse(o, "it belongs to uid %d and is not writable by others; the command runs as uid 0 without capabilities and could not write it: run as that user, or change its owner or mode", res.Node.UID)
}

// addRoot notes a root that exists.
func (b *builder) addRoot(e entry) {
	b.roots = append(b.roots, e)
	b.named.add(e.res.Path)
	b.asked = append(b.asked, Asked{Origin: e.origin, Path: e.res.Path, Node: e.res.Node, State: Planned})
	if e.res.Path == "/" {
		b.hostView = true
	}
}

// resolveScratch resolves the scratch, private or not.
func (b *builder) resolveScratch() *Refusal {
	if b.p.Scratch == protocol.ScratchTmpfs {
		return b.resolveTmpfs()
	}
	o := Origin{List: listScratch, Index: -1, Path: b.p.Scratch}
	res, absent, r := b.resolve(o)
	switch {
	case r != nil:
		return r
	case absent != "":
		return refuse(o, "%s; create it, or use \"tmpfs\"", absent)
	case res.Path == "/":
		return refuse(o, "it leads to \"/\", and a grant there could not be narrowed; name a directory of its own")
	case res.Node.Kind != host.Dir:
		return refuse(o, "%q is not a directory; name one, or use \"tmpfs\"", res.Path)
	}
	if r := b.checkOwner(o, res); r != nil {
		return r
	}
	b.scratch = entry{origin: o, res: res, class: ScratchPath}
	b.named.add(res.Path)
	b.asked = append(b.asked, Asked{Origin: o, Path: res.Path, Node: res.Node, State: Planned})
	return nil
}

// resolveTmpfs finds the place of a private scratch.
func (b *builder) resolveTmpfs() *Refusal {
	o := Origin{List: listScratch, Index: -1, Path: tmpDir(b.f)}
	res, absent, r := b.resolve(o)
	if r != nil {
		return r
	}
	if res.Path == "/" || errors.Is(res.Err, host.ErrNotDir) || absent == "" && res.Node.Kind != host.Dir {
		return refuse(o, "%q is not a directory of its own on this host; give scratch as a path", res.Path)
	}
	if absent != "" && b.hostView && b.f.OS == "linux" {
		return refuse(o, "%s, so a private scratch has no place in a view of the whole host; create it, or give scratch as a path", absent)
	}
	b.scratch = entry{origin: o, res: res, class: ScratchTmpfs}
	b.asked = append(b.asked, Asked{Origin: o, Path: res.Path, Node: res.Node, State: Planned})
	return nil
}

// resolveMounts resolves the explicit mounts.
func (b *builder) resolveMounts() *Refusal {
	for i, m := range b.p.Mounts {
		o := Origin{List: listMounts, Index: i, Path: m.Path}
		res, absent, r := b.resolve(o)
		if r != nil {
			return r
		}
		if absent != "" && m.Required {
			return refuse(o, "%s, and the mount is required; create it, or set required to false", absent)
		}
		if absent != "" {
			// Not "mounts": what may be missing is no layer that failed.
			b.skip(tagOptional, fmt.Sprintf("%s %q is left out: %s", o.name(), o.Path, absent))
			b.asked = append(b.asked, Asked{Origin: o, Path: res.Path, Node: res.Node, State: Absent})
			continue
		}
		class := MountRO
		if m.Access == protocol.ReadWrite {
			class = MountRW
			if r := b.checkOwner(o, res); r != nil && res.Node.Kind == host.Dir {
				return r
			}
		}
		b.mounts = append(b.mounts, mountEntry{entry{origin: o, res: res, class: class}, m})
		b.named.add(res.Path)
		b.asked = append(b.asked, Asked{Origin: o, Path: res.Path, Node: res.Node, State: Planned})
	}
	return nil
}
