package plan

import (
	"fmt"

	"sandboxd/internal/host"
)

// CheckCwd judges a working directory by its resolved form, which it returns. The
// error is a *Refusal: the directory is not in the jail's view, or not there.
func (p Plan) CheckCwd(cwd string, f host.Facts) (string, error) {
	no := func(format string, args ...any) (string, error) {
		return "", &Refusal{List: "cwd", Path: cwd, Reason: fmt.Sprintf(format, args...)}
	}
	res := f.Layout.Resolve(cwd)
	if res.Err != nil {
		return no("cannot resolve it: %v; name a directory", res.Err)
	}
	v := p.At(res.Path)
	switch v.Effect {
	case None:
		if res.Path == "/" {
			return res.Path, nil // empty, but there
		}
		if res.Node.Kind == host.Missing {
			return no("%q does not exist on this host; create it", res.Missing)
		}
		return no("%q is outside the view; add it to a root, or start elsewhere", res.Path)
	case Masked:
		return no("%q is hidden by %s %q; start elsewhere", res.Path, v.Op.Origin.name(), v.Op.Origin.Path)
	case Private:
		if p.appears(res.Path) {
			return res.Path, nil
		}
		return no("%q lies in the jail's own %q, where only what the jail makes is; start there, or make it a root", res.Path, v.Op.Path)
	}
	switch res.Node.Kind {
	case host.Dir:
		return res.Path, nil
	case host.Missing:
		return no("%q does not exist on this host; create it", res.Missing)
	case host.Denied:
		return no("this user may not search the directory that holds %q", res.Path)
	case host.Unknown:
		return no("the host was never asked about %q; this is a defect of the survey", res.Path)
	}
	return no("%q is not a directory", res.Path)
}

// appears says whether a private file system holds a directory at path: its own
// top, or the parent of a mount point.
func (p Plan) appears(path string) bool {
	for _, op := range p.Ops {
		if op.Path == path && op.Class != LinkTo || op.Path != path && host.Beneath(op.Path, path) {
			return true
		}
	}
	return false
}
