package fence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandboxd/internal/roots"
	"sandboxd/protocol"
)

// Guard is one path that runs, or is read as configuration, with the user's own
// authority after the command has ended.
type Guard struct {
	Path    string
	Why     string
	Missing bool // kept uncreatable; else read-only
}

// guard adds the default list to the policy: what exists becomes a read-only mount,
// what is missing a protected path.
func (b *builder) guard() error {
	if b.repo.link {
		return unguardable(b.repo.dotGit)
	}
	var err error
	add := func(path, why string) {
		if err == nil {
			err = b.add(path, why)
		}
	}
	b.guardGit(add)
	if entries, _ := os.ReadDir(b.repo.top); len(entries) > 0 {
		addAll(add, b.repo.top, WorkspaceGuarded)
	}
	if b.reach.home != "" && b.reach.home == b.repo.top {
		addAll(add, b.repo.top, HomeGuarded)
	}
	for _, g := range b.caches {
		for _, name := range g.Execute {
			if slices.Contains(b.out.Policy.WritableRoots, g.Path) {
				add(filepath.Join(g.Path, name), "is read as configuration by "+g.Tool)
			}
		}
	}
	return err
}

func addAll(add func(path, why string), dir string, list []Guarded) {
	for _, g := range list {
		add(filepath.Join(dir, g.Name), g.Why)
	}
}

// guardGit guards the repository that the workspace has; where there is none, the
// command may make one.
func (b *builder) guardGit(add func(path, why string)) {
	r := b.repo
	if r.file {
		add(r.dotGit, "leads git to another directory")
	}
	if r.common == "" {
		return
	}
	b.guardCommon(r.common, r.top, add)
	for _, dir := range modules(filepath.Join(r.common, "modules"), 0) {
		top := dir // of the submodule, where its configuration names it
		if back := gitConfig(filepath.Join(dir, "config"))["core.worktree"]; len(back) > 0 {
			top = joined(dir, back[len(back)-1])
			if file := filepath.Join(top, ".git"); within(file, r.top) && exists(file) {
				add(file, "leads git to another directory")
			}
		}
		b.guardCommon(dir, top, add)
	}
}

// guardCommon guards one common directory with its linked worktrees.
func (b *builder) guardCommon(dir, top string, add func(path, why string)) {
	addAll(add, dir, GitGuarded)
	trees, _ := os.ReadDir(filepath.Join(dir, "worktrees"))
	for _, t := range trees {
		if t.IsDir() {
			addAll(add, filepath.Join(dir, "worktrees", t.Name()), WorktreeGuarded)
		}
	}
	for _, path := range configured(filepath.Join(dir, "config"), top, b.reach.home) {
		if b.grantedAbove(path) {
			add(path, "is named by the repository's configuration")
		}
	}
}

// maxModules bounds the depth of a submodule's name.
const maxModules = 8

// modules finds the git directories of submodules, those of submodules within them
// included; a name may have slashes.
func modules(dir string, depth int) (found []string) {
	entries, err := os.ReadDir(dir)
	if err != nil || depth > maxModules {
		return nil
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		switch {
		case !e.IsDir():
		case exists(filepath.Join(at, "HEAD")):
			found = append(found, at)
			found = append(found, modules(filepath.Join(at, "modules"), depth+1)...)
		default:
			found = append(found, modules(at, depth+1)...)
		}
	}
	return found
}

// add guards one path, unless the user opened or hid it by name.
func (b *builder) add(path, why string) error {
	if b.decided(path) || slices.ContainsFunc(b.out.Guards, func(g Guard) bool { return g.Path == path }) {
		return nil
	}
	missing := false
	for at := b.anchor(path); at != path; {
		rest := strings.TrimPrefix(strings.TrimPrefix(path, at), "/")
		name, _, _ := strings.Cut(rest, "/")
		at = filepath.Join(at, name)
		info, err := os.Lstat(at)
		switch {
		case os.IsNotExist(err):
			missing = true
		case err == nil && roots.IsPlaceholder(at):
			// Of another run in this workspace, or of one that was killed: as a mount it
			// would be gone by the time it is bound.
			missing = true
		case err != nil:
			return fmt.Errorf("cannot guard %q: %w; give --no-guard if it need not be", path, err)
		case info.Mode()&os.ModeSymlink != 0:
			return unguardable(at)
		}
		if missing {
			break
		}
	}
	b.out.Guards = append(b.out.Guards, Guard{path, why, missing})
	p := &b.out.Policy
	if missing {
		p.Protected = append(p.Protected, path)
	} else {
		p.Mounts = append(p.Mounts, protocol.Mount{Path: path, Access: protocol.ReadOnly, Required: true})
	}
	return nil
}

// unguardable refuses a link: a command that can write its directory replaces it,
// and no mount can be put on the link itself.
func unguardable(path string) error {
	return fmt.Errorf("cannot guard %q: it is a symbolic link, which a command could replace; make it a real file or directory, or give --no-guard", path)
}

// anchor is the granted directory that holds a path: what is above it a command
// cannot change.
func (b *builder) anchor(path string) string {
	best := b.repo.top
	for _, root := range append(slices.Clone(b.out.Policy.WritableRoots), b.repo.top) {
		if within(path, root) && (!within(path, best) || len(root) < len(best)) {
			best = root
		}
	}
	if !within(path, best) {
		return filepath.Dir(path)
	}
	return best
}

// grantedAbove says whether a command could change the path at all.
func (b *builder) grantedAbove(path string) bool {
	return slices.ContainsFunc(append(slices.Clone(b.out.Policy.WritableRoots), b.repo.top), func(root string) bool {
		return within(path, root)
	})
}

// decided says whether the user's own lists settle a path: a guard below something
// protected, or at or above something opened, would contradict them.
func (b *builder) decided(path string) bool {
	return slices.ContainsFunc(b.in.Hidden, func(h string) bool { return within(path, h) || within(h, path) }) ||
		slices.ContainsFunc(b.in.Open, func(o string) bool { return within(o, path) })
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
