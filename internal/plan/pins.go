package plan

import "sandboxd/internal/host"

// addPins keeps every directory between a writable grant and something narrower
// inside it from being renamed: rename(2) of a directory above a mount point is
// legal, so "mv .git g; mkdir -p .git/hooks" would walk round a mask. A mount
// point itself cannot be renamed (EBUSY).
func (b *builder) addPins() *Refusal {
	for _, op := range b.masks {
		b.pinAbove(op.Path)
	}
	for _, op := range sorted(b.grants) {
		if op.Class.access() == accessRead {
			b.pinAbove(op.Path)
		}
	}
	for _, op := range sorted(b.explicit) {
		if op.Class == MountRO {
			b.pinAbove(op.Path)
			b.pinInMount(op)
		}
	}
	return nil
}

// pinAbove pins the parents of a narrower path.
func (b *builder) pinAbove(path string) {
	around := b.above(path)
	for around.Class == Pin { // an earlier pin is part of the writable region
		around = b.above(around.Path)
	}
	if around.Class.access() != accessWrite {
		return
	}
	for _, dir := range between(around.Path, path) {
		b.pinAt(dir)
	}
}

// pinAt binds a directory onto itself, where it is no mount point yet.
func (b *builder) pinAt(dir string) {
	if _, ok := b.grants[dir]; ok || b.f.OS == "linux" && (host.Beneath(dir, "/proc") || host.Beneath(dir, "/dev")) {
		return
	}
	b.grants[dir] = Op{Path: dir, Class: Pin, Node: b.f.Layout[dir],
		Origin: Origin{List: listPin, Index: -1, Path: dir, Why: "so that it cannot be renamed away from what is narrower beneath it"}}
}

// pinInMount does the same inside an explicit read-write mount. It lands after
// the masks, so its pins must be mounts of the same access, placed by path.
func (b *builder) pinInMount(op Op) {
	var around string
	ancestors(op.Path, func(dir string) bool {
		m, ok := b.explicit[dir]
		if ok && m.Class == MountRW && m.Origin.List == listMounts {
			around = dir
		}
		return !ok || m.Origin.List != listMounts
	})
	if around == "" {
		return
	}
	for _, dir := range between(around, op.Path) {
		if _, ok := b.explicit[dir]; !ok {
			b.explicit[dir] = Op{Path: dir, Class: MountRW, Node: b.f.Layout[dir],
				Origin: Origin{List: listPin, Index: -1, Path: dir, Why: "so that it cannot be renamed away from the read-only mount beneath it"}}
		}
	}
}
