package roots

import (
	"slices"
	"strings"

	"sandboxd/internal/host"
)

// kernel finds the mounts of the kernel's own file systems below what the policy lets
// a command write, and the host's processes below what it shows: a recursive bind takes
// them along. Not those that the jail has anew.
func (s *survey) kernel(writable, shown []string) (found []host.KernelMount, err error) {
	writable, shown = s.physical(writable), s.physical(shown)
	within := func(path string, dirs []string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return host.Beneath(path, dir) })
	}
	for i, m := range s.places.mounts {
		if !kernelsOwn(m.FSType) || m.FSType == "autofs" || m.FSType == "nsfs" || host.Beneath(m.Point, "/proc") || host.Beneath(m.Point, "/dev") ||
			!within(m.Point, writable) && !(m.FSType == "proc" && within(m.Point, shown)) {
			continue
		}
		covered := slices.ContainsFunc(s.places.mounts[i+1:], func(o Mount) bool { return o.Point == m.Point })
		// A mount's place has no links, so where one is met something lies over it.
		at, err := s.walk(m.Point)
		if s.unseen(m.Point, err) {
			return nil, err // else it would silently be granted along
		}
		shut := s.r.layout[m.Point].Kind != host.Dir && s.r.layout.Resolve(m.Point).Node.Kind == host.Denied // its owner opens it again
		if err == nil && (at == m.Point || shut) && !covered {
			found = append(found, host.KernelMount{Path: m.Point, FSType: m.FSType})
		}
	}
	slices.SortFunc(found, func(a, b host.KernelMount) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// physical gives what exists of paths as the kernel calls it.
func (s *survey) physical(paths []string) (out []string) {
	for _, path := range paths {
		if res := s.r.layout.Resolve(path); res.Err == nil && res.Node.Kind == host.Dir {
			out = append(out, res.Path)
		}
	}
	return out
}
