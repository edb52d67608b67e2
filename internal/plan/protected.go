package plan

import (
	"errors"
	"slices"

	"sandboxd/internal/host"
)

// resolveProtected resolves the protected list. An entry below another gets no
// mask of its own: bubblewrap could not make its mount point in the read-only
// mask around it.
func (b *builder) resolveProtected() *Refusal {
	b.home = b.physicalHome()
	for i, path := range b.p.Protected {
		o := Origin{List: listProtected, Index: i, Path: path}
		for _, name := range b.f.Aliases[path] {
			if r := b.resolveAlias(o, name); r != nil {
				return r
			}
		}
		res := b.f.Layout.ResolveAbsent(path, b.standsFor)
		switch {
		case errors.Is(res.Err, host.ErrNotDir):
		case res.Err != nil:
			return refuse(o, "cannot resolve it: %v; name the path that is meant", res.Err)
		case res.Node.Kind == host.Unknown:
			return refuse(o, "the host was never asked about %q; this is a defect of the survey, not of the policy", res.Path)
		case res.Path == "/":
			return refuse(o, "it leads to \"/\", which would leave nothing; name the directories that are meant")
		}
		if r := b.checkProc(o, res.Path); r != nil {
			return r
		}
		b.protected = append(b.protected, entry{origin: o, res: res, class: MaskDir})
	}
	// The order of the list must not show in the plan.
	slices.SortStableFunc(b.protected, func(x, y entry) int {
		if c := comparePaths(x.res.Path, y.res.Path); c != 0 {
			return c
		}
		if c := comparePaths(x.origin.Path, y.origin.Path); c != 0 {
			return c
		}
		return one(x.alias) - one(y.alias)
	})
	for _, e := range b.protected {
		if _, ok := b.guarded[e.res.Path]; !ok && e.res.Err == nil {
			b.guarded[e.res.Path] = e.origin
		}
	}
	return nil
}

// resolveAlias adds another name of a protected path, which a mount of the host
// gives it: the mask has to stand there as well.
func (b *builder) resolveAlias(o Origin, name string) *Refusal {
	res := b.f.Layout.ResolveAbsent(name, b.standsFor)
	if res.Path == "/" {
		return refuse(o, "the host has it mounted at \"/\" as well, so it cannot be hidden; name the directories that are meant")
	}
	if res.Err != nil && !errors.Is(res.Err, host.ErrNotDir) {
		return refuse(o, "the host has it mounted at %q as well, which cannot be resolved; unmount that, or leave the entry out", name)
	}
	b.protected = append(b.protected, entry{o, res, MaskDir, true})
	return nil
}

// standsFor says whether a placeholder is the one that this plan would put there. A
// command can mark an empty directory of its own as one, and must not make a root
// or an existing file vanish from the plan by that.
func (b *builder) standsFor(path string, last bool, n host.Node) bool {
	_, file := standIn(path, b.home)
	return b.f.OS == "linux" && (file && last) == (n.Kind == host.File)
}

// physicalHome is HOME with its links followed, "" where that is not known.
func (b *builder) physicalHome() string {
	if b.f.Home == "" {
		return ""
	}
	if res := b.f.Layout.Resolve(b.f.Home); res.Err == nil {
		return res.Path
	}
	return ""
}

// checkProc refuses what cannot be masked in a fresh /proc: stage 2 is executed
// through /proc/self/fd, and a process's directory there is another one inside.
func (b *builder) checkProc(o Origin, path string) *Refusal {
	if b.f.OS != "linux" || !host.Beneath(path, "/proc") {
		return nil
	}
	if path != "/proc" && (path[6] < '0' || path[6] > '9') {
		return nil
	}
	return refuse(o, "%q cannot be masked: the jail needs its own /proc to start the command, and it shows only the jail's processes; take the entry out", path)
}
