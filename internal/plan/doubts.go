package plan

import (
	"fmt"

	"sandboxd/internal/host"
)

// sayLinks reports a link on the way to a protected path that the command could
// replace: the mask is on what it leads to now.
func (b *builder) sayLinks(e entry) {
	for _, hop := range e.res.Links {
		if b.region(hop.Path).Class.access() != accessWrite {
			continue
		}
		b.skip(listMounts, fmt.Sprintf("%q is protected through the link %q, which lies in a writable place and can be replaced by the command; what it leads to, %q, is masked", e.origin.Path, hop.Path, e.res.Path))
	}
}

// sayHardLinks reports a protected file that has other names, where one of them
// may be in the view: a hard link cannot be found, only counted.
func (b *builder) sayHardLinks(e entry) {
	if !manyNames(e) || e.alias {
		return
	}
	for _, r := range b.granted() {
		if r.res.Node.ID.Dev == e.res.Node.ID.Dev {
			b.skip(listMounts, fmt.Sprintf("%q has %d hard links; its other names are not masked and may be reachable in the jail", e.res.Path, e.res.Node.Nlink))
			return
		}
	}
}

func manyNames(e entry) bool { return e.res.Node.Kind == host.File && e.res.Node.Nlink > 1 }

// granted is what the policy shows of the host: roots, a host-path scratch, mounts.
func (b *builder) granted() []entry {
	out := b.roots[:len(b.roots):len(b.roots)]
	if b.scratch.class == ScratchPath {
		out = append(out, b.scratch)
	}
	for _, m := range b.mounts {
		out = append(out, m.entry)
	}
	return out
}

// sayNarrow reports what is read-only by one name and may be written by another: a
// file with several hard links, a directory that the host has mounted twice.
func (b *builder) sayNarrow() *Refusal {
	writable := map[uint64]bool{}
	var narrow []entry
	for _, e := range b.granted() {
		switch e.class {
		case Writable, ScratchPath, MountRW:
			writable[e.res.Node.ID.Dev] = true
		case Readable, MountRO:
			narrow = append(narrow, e)
		}
	}
	for _, e := range narrow {
		if manyNames(e) && writable[e.res.Node.ID.Dev] {
			b.skip(listMounts, fmt.Sprintf("%q is read-only and has %d hard links; another one of its names may be writable in the jail", e.res.Path, e.res.Node.Nlink))
		}
		for _, name := range b.f.Aliases[e.origin.Path] {
			if b.shown(name).Class.access() == accessWrite {
				b.skip(listMounts, fmt.Sprintf("%s %q is read-only, but the host has it mounted at %q as well, where %s %q makes it writable", e.origin.name(), e.origin.Path, name, b.shown(name).Origin.name(), b.shown(name).Origin.Path))
			}
		}
	}
	return nil
}

// shown is the operation that decides the view of a path, masks left out.
func (b *builder) shown(path string) Op {
	for dir := path; ; dir = host.Parent(dir) {
		if op, ok := b.explicit[dir]; ok {
			return op
		}
		if dir == "/" {
			return b.region(path)
		}
	}
}

// checkCovered refuses a mount that takes a place away which the policy promises by
// another list: mounts come after every grant.
func (b *builder) checkCovered() *Refusal {
	over := map[string]mountEntry{}
	for _, m := range b.mounts {
		over[m.res.Path] = m
	}
	covering := func(path string) (mountEntry, bool) {
		for dir := path; ; dir = host.Parent(dir) {
			if m, ok := over[dir]; ok {
				return m, true
			}
			if dir == "/" {
				return mountEntry{}, false
			}
		}
	}
	if m, ok := covering(b.scratch.res.Path); ok && (b.scratch.class == ScratchTmpfs || m.class == MountRO) {
		what := "the private scratch at " + b.scratch.res.Path
		if b.scratch.class == ScratchPath {
			what = "the scratch " + both(b.scratch.origin.Path, b.scratch.res.Path) + " with something read-only"
		}
		return refuse(m.origin, "as %s it covers %s; name something narrower, or another scratch", both(m.origin.Path, m.res.Path), what)
	}
	for _, e := range b.roots {
		m, ok := covering(e.res.Path)
		if ok && e.class == Readable && m.class == MountRW {
			return refuse(m.origin, "as %s it makes %s %q writable, which is to be readable only; take one of the two out, or name something narrower", both(m.origin.Path, m.res.Path), e.origin.name(), e.origin.Path)
		}
	}
	return nil
}

// sayDoubts reports what this plan leaves open for path sockets.
func (b *builder) sayDoubts() *Refusal {
	tmp := b.region("/tmp").Class
	if b.f.OS != "linux" || b.f.LandlockABI >= 9 || !b.hostView && tmp.access() != accessWrite {
		return nil
	}
	b.skip("sockets", "path sockets outside the masked places stay reachable in this view; only Landlock's ABI 9 or later can restrict them")
	return nil
}
