package fence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"sandboxd/internal/fence/repos"
	"sandboxd/protocol"
)

// shutError is a directory that can neither be looked at nor closed: nothing is run.
type shutError struct{ error }

// shutAll closes directories in which the guard could not look for what it guards. The
// first that it cannot close is firstOf's error.
func (b *builder) shutAll(list []repos.Shut) {
	for _, s := range list {
		if b.failed == nil { // else nothing is run, however many there are
			b.failed = b.shut(s)
		}
	}
}

// shut closes one: a command of the same user reaches by name what the guard did not
// find, or takes back a mode that an earlier one left for this. Read-only as a whole,
// neither its entries nor its mode are the command's.
func (b *builder) shut(s repos.Shut) error {
	dir := s.Dir
	if !b.grantedAbove(dir) || b.kept(dir) || b.readOnlyMount(dir) || slices.ContainsFunc(b.in.Hidden, func(h string) bool { return within(dir, h) }) {
		return nil
	}
	if errors.Is(s.Err, repos.ErrMore) && b.inCache(dir) { // a build would fail without
		b.beyond = append(b.beyond, dir)
		return nil
	}
	if slices.Contains(b.granted(), dir) || len(b.out.Guards) == maxGuards {
		return shutError{fmt.Errorf("cannot look for what is to be guarded in %q: %w; %s, or give --no-guard", dir, repos.Cause(s.Err), remedy(dir, s.Err))}
	}
	if found, err := b.walk(dir); err != nil {
		return shutError{err}
	} else if found != there || b.kept(dir) { // gone, or closed with its parent
		return nil
	}
	if p := &b.out.Policy; b.mounted(dir) {
		p.Mounts = append(p.Mounts, protocol.Mount{Path: dir, Access: protocol.ReadOnly, Required: true})
	} else if !slices.Contains(p.ReadableRoots, dir) { // no mount: those cover what is protected below
		p.ReadableRoots = append(p.ReadableRoots, dir)
	}
	b.out.Guards = append(b.out.Guards, Guard{Path: dir, Why: "cannot be looked at, and may hold what git or a tool runs"})
	b.closed = append(b.closed, s)
	return nil
}

// kept says whether a path lies in what was closed so, and in nothing below it that is
// granted again.
func (b *builder) kept(path string) bool {
	return slices.ContainsFunc(b.closed, func(c repos.Shut) bool {
		return within(path, c.Dir) && !slices.ContainsFunc(b.granted(), func(root string) bool {
			return root != c.Dir && within(root, c.Dir) && within(path, root)
		})
	})
}

// readOnlyMount says whether the nearest mount of the user's that holds a path lets nobody
// write there.
func (b *builder) readOnlyMount(path string) bool {
	best := ""
	for _, m := range b.in.Mounted {
		if within(path, m) && len(m) > len(best) {
			best = m
		}
	}
	return best != "" && !slices.Contains(b.in.Write, best)
}

func (b *builder) inCache(dir string) bool {
	return slices.ContainsFunc(b.caches, func(g Grant) bool { return within(dir, g.Path) })
}

// sayClosed notes what was closed: the command may miss being able to write there.
func (b *builder) sayClosed() {
	if len(b.beyond) > 0 {
		b.out.Notes = append(b.out.Notes, fmt.Sprintf("guard: the cache %q has more entries than are looked at, so not all that a tool runs of it is guarded; clean it", b.beyond[0]))
	}
	if len(b.closed) == 0 {
		return
	}
	more := ""
	if n := len(b.closed) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more such directories)", n)
	}
	first := b.closed[0]
	b.out.Notes = append(b.out.Notes, fmt.Sprintf("guard: %q could not be looked at (%v), so all of it is read-only; %s%s, since what it makes git run of other places is not guarded", first.Dir, repos.Cause(first.Err), remedy(first.Dir, first.Err), more))
}

// remedy is what makes a place one that can be looked at.
func remedy(at string, err error) string {
	switch {
	case !errors.Is(err, fs.ErrPermission):
		return "look at it, and make it one that can be listed"
	case regular(at):
		return "`chmod u+rw` it"
	}
	return "`chmod u+rwx` it"
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// barred is shut for what could not be reached in a directory. What is in one that this
// user may not search, and cannot open, nobody of this user reaches.
func (b *builder) barred(dir string, err error) {
	if err = repos.Usable(dir, err); err != nil {
		b.shutAll([]repos.Shut{{Dir: dir, Err: err}})
	}
}
