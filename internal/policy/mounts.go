package policy

import (
	"strings"

	"sandboxd/protocol"
)

// checkMounts judges explicit mounts, alone and against the other lists.
func checkMounts(p protocol.Policy) error {
	first := make(map[string]int, len(p.Mounts))
	for i, m := range p.Mounts {
		if err := checkMount(index("mounts", i), m); err != nil {
			return err
		}
		if j, twice := first[m.Path]; twice {
			return fail(index("mounts", i)+".path", "found %s a second time, after mounts[%d]; name each path once", quote(m.Path), j)
		}
		first[m.Path] = i
	}
	if len(p.Mounts) == 0 {
		return nil
	}
	protected, writable := newTree(p.Protected), newTree(p.WritableRoots)
	for i, m := range p.Mounts {
		if err := checkOverlap(index("mounts", i), m, p, protected, writable); err != nil {
			return err
		}
	}
	return nil
}

func checkMount(key string, m protocol.Mount) error {
	if err := checkPath(key+".path", m.Path); err != nil {
		return err
	}
	// The caller finds the mount again by this spelling, so it is not repaired.
	if loose(m.Path) {
		return fail(key+".path", "found %s, expected no doubled or trailing slash; write %s", quote(m.Path), quote(clean(m.Path)))
	}
	switch m.Path {
	case "/", "/proc", "/dev", "/sys":
		return fail(key+".path", "found %q, expected another path: this one is the jail's own", m.Path)
	}
	if strings.HasPrefix(m.Path, "/proc/") || strings.HasPrefix(m.Path, "/sys/") {
		return fail(key+".path", "found %s, expected a path outside /proc and /sys: those are the jail's own", quote(m.Path))
	}
	if m.Access != protocol.ReadOnly && m.Access != protocol.ReadWrite {
		return fail(key+".access", `found %s, expected "ro" or "rw"`, quote(string(m.Access)))
	}
	return nil
}

// checkOverlap compares one mount with the protected paths, in either direction,
// because mounts come after the masks, and with the roots that it would make
// unwritable.
func checkOverlap(key string, m protocol.Mount, p protocol.Policy, protected, writable *tree) error {
	at := treeKey(m.Path)
	j, found := protected.above(at)
	if !found {
		j, found = protected.below(at)
	}
	if found {
		return fail(key+".path", "found %s, which overlaps protected[%d] %s, expected none to lie above or below the other; remove one of the two",
			quote(m.Path), j, quote(p.Protected[j]))
	}
	if m.Access != protocol.ReadOnly {
		return nil
	}
	if j, found := writable.below(at); found {
		return fail(key+".access", `found a read-only mount of %s at or above writable_roots[%d] %s, which would not be writable; make it "rw" or remove one of the two`,
			quote(m.Path), j, quote(p.WritableRoots[j]))
	}
	return nil
}
