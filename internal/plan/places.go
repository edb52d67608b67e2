package plan

import (
	"fmt"
	"slices"

	"sandboxd/internal/host"
)

// maskPlaces hides what nobody asked to see: service sockets where a broad grant
// shows them, secrets from a root caller, bubblewrap's init without Landlock.
func (b *builder) maskPlaces() *Refusal {
	for _, p := range places(ServicePlaces, b.f) {
		b.maskPlace(listService, p)
		b.noteLater(p)
	}
	if b.f.UID == 0 {
		for _, p := range SecretPlaces {
			if host.Beneath(p.Path, "/proc") {
				b.hideProc(p)
			} else {
				b.maskPlace(listSecret, p)
			}
		}
		b.hidePrivate()
	}
	for _, s := range b.f.Services {
		if res := b.f.Layout.Resolve(s.Path); res.Err == nil && (res.Node.Kind == host.Socket || res.Node.Kind == host.Denied) && !b.grantsDir(host.Parent(res.Path)) {
			b.maskPlace(listService, Place{res.Path, "the socket that " + s.Variable + " names"})
		}
	}
	b.hideKernel()
	b.maskAgent()
	b.maskShutRoots()
	if b.f.OS == "linux" && b.f.LandlockABI == 0 {
		b.setMask(Op{Path: "/proc/1", Class: MaskDir, Perms: 0o444, Node: host.Node{Kind: host.Dir},
			Origin: Origin{List: listProc, Index: -1, Path: "/proc/1", Why: "without Landlock a command could take over bubblewrap's init through it"}})
	}
	return b.refused
}

// maskPlace hides one place unless the policy names it. An explicit mount below
// it comes after the mask, so then the mask must be searchable.
func (b *builder) maskPlace(list string, p Place) {
	if b.maskShut(Origin{List: list, Index: -1, Path: p.Path, Why: p.Why}, p.Path) {
		return
	}
	res := b.f.Layout.Resolve(p.Path)
	if res.Err != nil || !exists(res.Node.Kind) || res.Path == "/" || !b.visible(res.Path) {
		return
	}
	if _, closed := b.closedDir(res.Path); closed {
		return
	}
	byRoot, byMount := b.namedBy(res.Path)
	if byRoot {
		b.sayNamed(list, res.Path, p.Why)
		return
	}
	op := Op{Path: res.Path, Class: MaskDir, Perms: 0o444, Node: res.Node, Origin: Origin{List: list, Index: -1, Path: p.Path, Why: p.Why}}
	if res.Node.Kind != host.Dir {
		op.Class, op.Perms = MaskFile, 0
	} else if byMount {
		op.Perms = 0o111 // searchable for the mount, and still nothing to list
	}
	if _, ok := b.masks[op.Path]; !ok {
		b.masks[op.Path] = op
	}
}

// noteLater notes a place that is not there, and that only the host can make: nothing can
// be mounted on it, and the service that comes there would be in the view. What the
// command can make too, as below a writable /tmp, may as well be its own.
func (b *builder) noteLater(p Place) {
	res := b.f.Layout.Resolve(p.Path)
	if b.f.OS != "linux" || res.Err != nil || res.Node.Kind != host.Missing || b.named[res.Path] || slices.Contains(b.later, res.Path) {
		return
	}
	if b.region(res.Path).Class.access() == accessRead {
		b.later = append(b.later, res.Path)
	}
}

// sayNamed reports a place that stays open because the policy names something
// inside it; where it names the place itself that is what was asked for.
func (b *builder) sayNamed(list, path, why string) {
	for _, e := range append(b.roots[:len(b.roots):len(b.roots)], b.scratch) {
		if e.res.Path == path {
			return
		}
	}
	if _, ok := b.explicit[path]; ok {
		return
	}
	tag := "sockets"
	if list != listService {
		tag = listMounts
	}
	b.skip(tag, fmt.Sprintf("%q is not masked because the policy names %q inside it: %s", path, b.namedIn(path), why))
}

// visible says whether a grant shows the host's inode at a path.
func (b *builder) visible(path string) bool {
	a := b.region(path).Class.access()
	if host.Beneath(path, "/dev") || host.Beneath(path, "/proc") {
		return b.f.OS != "linux"
	}
	return a == accessRead || a == accessWrite
}

// namedBy says whether the policy names a place: a root or the scratch at or
// below it, a mount exactly there; or only a mount somewhere below.
func (b *builder) namedBy(path string) (exactly, below bool) {
	if !b.named[path] {
		return false, false
	}
	if _, ok := b.explicit[path]; ok {
		return true, false
	}
	return b.namedIn(path) != "", true
}

// namedIn finds the root or scratch at or below a place.
func (b *builder) namedIn(path string) string {
	for _, e := range append(b.roots[:len(b.roots):len(b.roots)], b.scratch) {
		if host.Beneath(e.res.Path, path) {
			return e.origin.Path
		}
	}
	if op, ok := b.explicit[path]; ok {
		return op.Origin.Path
	}
	return ""
}

// maskAgent hides the ssh agent's directory, or the socket alone where the
// directory holds something the jail needs.
func (b *builder) maskAgent() {
	if b.f.SSHAuth == "" {
		return
	}
	res := b.f.Layout.Resolve(b.f.SSHAuth)
	if res.Err != nil || !exists(res.Node.Kind) && res.Node.Kind != host.Denied {
		return
	}
	why := "the ssh agent, which signs with the user's keys"
	dir := host.Parent(res.Path)
	if b.grantsDir(dir) {
		return
	}
	if b.named[dir] || b.occupied[dir] || systemless(dir) || b.home != "" && host.Beneath(b.home, dir) {
		b.maskPlace(listService, Place{res.Path, why})
		return
	}
	b.maskPlace(listService, Place{dir, why})
}

// grantsDir says whether the policy names a socket's directory itself, which is not one that
// it names for other reasons.
func (b *builder) grantsDir(dir string) bool {
	return dir != b.home && !systemless(dir) &&
		slices.ContainsFunc(append(b.roots[:len(b.roots):len(b.roots)], b.scratch), func(e entry) bool { return e.res.Path == dir })
}

// dropNested removes masks below another mask: their mount points cannot be made
// there, and nothing of what they hide is left.
func (b *builder) dropNested() *Refusal {
	for path := range b.masks {
		ancestors(path, func(dir string) bool {
			if _, ok := b.masks[dir]; ok {
				delete(b.masks, path)
				return false
			}
			return true
		})
	}
	return nil
}
