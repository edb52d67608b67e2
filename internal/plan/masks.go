package plan

import "sandboxd/internal/host"

// maskProtected plans a mask for each protected path, outermost first.
func (b *builder) maskProtected() *Refusal {
	states := map[string]State{}
	for _, e := range b.protected {
		state := Planned
		outer, nested := b.protectedPath(host.Parent(e.res.Path))
		b.sayHardLinks(e)
		if nested {
			state = states[outer]
		} else {
			b.sayLinks(e)
			state = b.maskOne(e)
		}
		if e.res.Err == nil {
			states[e.res.Path] = state
		}
		b.asked = append(b.asked, Asked{Origin: e.origin, Path: e.res.Path, Node: e.res.Node, State: state, Alias: e.alias})
	}
	return b.refused
}

// maskOne plans the mask of one protected path by what is at the path and what
// surrounds it.
func (b *builder) maskOne(e entry) State {
	path, node := e.res.Path, e.res.Node
	if b.f.OS != "linux" {
		if e.res.Err != nil { // the file above it must stay readable: git's worktrees
			return b.pinFile(e, b.region(path))
		}
		// Seatbelt denies names, whether they exist or not.
		b.mask(e, path, node)
		return Planned
	}
	if host.Beneath(path, "/dev") || host.Beneath(path, "/proc") {
		return b.maskKernel(e)
	}
	region := b.region(path)
	if region.Class == RootTmpfs {
		return b.maskUngranted(e)
	}
	if region.Class == ScratchTmpfs {
		b.maskInTmpfs(e, region.Path)
		return Planned
	}
	if e.res.Err != nil { // below something that is no directory
		return b.pinFile(e, region)
	}
	if node.Kind == host.Unknown {
		b.refused = refuse(e.origin, "the host has it mounted at %q as well, in %s %q, and that cannot be looked at; unmount it there, or take one of the two out", path, region.Origin.name(), region.Origin.Path)
		return Barred
	}
	if dir, closed := b.closedDir(path); closed || node.Kind == host.Denied {
		return b.maskClosed(e, region, dir)
	}
	if node.Kind != host.Missing {
		b.mask(e, path, node)
		return Planned
	}
	if region.Class.access() != accessWrite {
		b.absent = append(b.absent, path)
		return Absent // read-only all around: nothing can be made there from inside
	}
	if len(e.res.Missing)-len(host.Parent(e.res.Missing)) > nameMax+1 {
		return Barred // no file system takes such a name
	}
	if b.foreign(b.f.Layout[host.Parent(e.res.Missing)]) {
		b.pinBarred(region, host.Parent(e.res.Missing))
		return Barred // nor can the helper make a mount point there
	}
	b.placeholder(e)
	return Planned
}

// nameMax is NAME_MAX of <linux/limits.h>, in bytes.
const nameMax = 255

// foreign says that an ordinary caller cannot create anything in a directory. The
// group bits count whatever the group is: they are the ACL's mask too (acl(5)).
func (b *builder) foreign(dir host.Node) bool {
	return b.f.UID != 0 && dir.UID != uint32(b.f.UID) && dir.Mode&0o022 == 0
}

// maskUngranted handles a path outside every grant. It is invisible and, in the
// sealed root, cannot be made; a mask is only needed where something narrower
// lies beneath and makes the directory appear.
func (b *builder) maskUngranted(e entry) State {
	if !b.occupied[e.res.Path] {
		return Hidden
	}
	b.mask(e, e.res.Path, e.res.Node)
	return Planned
}

// maskInTmpfs masks in a tmpfs of ours, where bubblewrap makes the mount point:
// the first component that nothing else needs, because a directory above a
// deeper mask could be renamed away and made anew.
func (b *builder) maskInTmpfs(e entry, top string) {
	path := e.res.Path
	for _, dir := range between(top, path) {
		if !b.occupied[dir] {
			b.setMask(Op{Path: dir, Class: MaskDir, Perms: 0o555, Origin: e.origin, Node: host.Node{Kind: host.Missing}})
			return
		}
	}
	b.mask(e, path, e.res.Node)
}

// maskKernel masks what exists in the fresh /dev and /proc.
func (b *builder) maskKernel(e entry) State {
	path := e.res.Path
	switch path {
	case "/dev", "/dev/shm", "/dev/pts":
		b.mask(e, path, host.Node{Kind: host.Dir})
		return Planned
	case "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty":
		b.mask(e, path, host.Node{Kind: host.CharDevice})
		return Planned
	}
	if host.Beneath(path, "/dev/shm") {
		b.maskInTmpfs(e, "/dev/shm")
		return Planned
	}
	if host.Beneath(path, "/dev") || !exists(e.res.Node.Kind) {
		return Hidden // not among the devices of the fresh, read-only /dev
	}
	b.mask(e, path, e.res.Node)
	return Planned
}

// pinFile keeps a path away whose ancestor is a regular file (".git" in a
// worktree): bound onto itself, the file cannot be removed or renamed, so no
// directory can take its place.
func (b *builder) pinFile(e entry, region Op) State {
	if region.Class.access() == accessWrite {
		b.pinAt(e.res.Path)
		for _, dir := range between(region.Path, e.res.Path) {
			b.pinAt(dir)
		}
	}
	return Barred
}

// pinBarred keeps a directory in its place whose own mode keeps the command out:
// renaming it needs write access to its parent only, and another one could be made
// under its name.
func (b *builder) pinBarred(region Op, dir string) {
	if region.Class.access() != accessWrite || dir == region.Path || !host.Beneath(dir, region.Path) {
		return
	}
	b.pinAt(dir)
	for _, d := range between(region.Path, dir) {
		b.pinAt(d)
	}
}

// maskClosed handles a path behind a directory that this caller cannot search.
// Neither can the command, except that the owner of the directory may chmod it:
// so where that is possible the directory itself is masked.
func (b *builder) maskClosed(e entry, region Op, dir string) State {
	if dir == "" {
		dir = host.Parent(e.res.Path)
		for b.f.Layout[dir].Kind == host.Denied || b.f.Layout[dir].Kind == host.Unknown {
			dir = host.Parent(dir)
		}
	}
	n := b.f.Layout[dir]
	if region.Class.access() == accessWrite && int(n.UID) == b.f.UID && dir == region.Path {
		b.refused = refuse(e.origin, "%s %q above it is closed to its own owner (mode %04o), and the command could open it again; make that directory searchable (chmod u+x), or take one of the two out", region.Origin.name(), dir, n.Mode)
	}
	if region.Class.access() != accessWrite || int(n.UID) != b.f.UID || !host.Beneath(dir, region.Path) || dir == region.Path {
		b.pinBarred(region, dir)
		return Barred
	}
	b.setMask(Op{Path: dir, Class: MaskDir, Perms: 0o444, Origin: e.origin, Node: n})
	return Planned
}

// placeholder keeps a missing path in a writable bind uncreatable, by covering
// its first missing component with something empty.
func (b *builder) placeholder(e entry) {
	at := e.res.Missing
	op := Op{Path: at, Class: MaskDir, Perms: 0o555, Origin: e.origin, Node: host.Node{Kind: host.Missing}, Placeholder: true}
	if s, ok := standIn(at, b.home); ok && at == e.res.Path {
		op.Class, op.Perms, op.Content = MaskFile, s.Perms, s.Content
	}
	b.setMask(op)
}

// mask covers exactly this path, by the kind of inode that is there.
func (b *builder) mask(e entry, path string, n host.Node) {
	op := Op{Path: path, Class: MaskDir, Perms: 0o444, Origin: e.origin, Node: n}
	switch {
	case n.Kind == host.Dir:
		if belowName(path, ".git") {
			op.Perms = 0o555 // git prints a hint per hook for a directory it cannot search
		}
	case exists(n.Kind):
		op.Class, op.Perms = MaskFile, 0
	default:
		op.Perms = 0o555
	}
	b.setMask(op)
}

// setMask adds a mask; the first one at a place stays.
func (b *builder) setMask(op Op) {
	if _, ok := b.masks[op.Path]; !ok {
		b.masks[op.Path] = op
	}
}
