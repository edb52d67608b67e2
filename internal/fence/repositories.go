package fence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandboxd/internal/fence/repos"
)

// target is one git directory to guard.
type target struct {
	dir string // with config and hooks
	top string // its work tree, or dir
}

// maxOthers bounds the repositories beside the workspace's own that are guarded: each
// takes four entries of a policy, or more.
const maxOthers = 64

// guardRepositories guards the workspace's repository, what git obeys inside the
// workspace for the one around it, and those that lie in what is granted. What of
// the first two cannot be guarded is an error, of the others a note.
func (b *builder) guardRepositories() error {
	b.files = b.git.userFiles(b.in.Env)
	var failed []unread
	b.user, failed = b.git.settings(b.files, b.reach.home, b.most)
	var others []repos.Repo
	err := b.firstOf(func(add adder) {
		others = b.others() // first, for the directories that it closes
		b.unnamed(target{top: b.repo.top}, failed)
		if b.repo.file {
			add(b.repo.dotGit, "leads git to another directory")
		}
		if b.repo.common != "" {
			b.guardTarget(target{b.repo.common, b.repo.top}, add)
		}
		for _, root := range append([]string{b.repo.top}, b.in.Write...) {
			if t, ok := enclosing(root); ok && b.grantedAbove(t.dir) {
				b.guardTarget(t, add)
			} else if ok {
				b.guardNamed(t, add)
			}
		}
	})
	if err != nil {
		return err
	}
	if len(others) > maxOthers {
		b.out.Notes = append(b.out.Notes, fmt.Sprintf("guard: %d repositories lie in what the command may write, and %d of them are guarded; name a narrower workspace, or protect %q", len(others), maxOthers, others[maxOthers].Git))
		others = others[:maxOthers]
	}
	for _, r := range others {
		err := b.guardOther(r)
		if errors.As(err, new(shutError)) {
			return err
		}
		if err != nil {
			b.out.Notes = append(b.out.Notes, fmt.Sprintf("guard: the repository in %q is not guarded: %s", r.Top, err))
		}
	}
	return nil
}

// others finds the repositories in what is granted that are not the workspace's own:
// nested ones, those of directories that the user named, and those in caches, in
// which a tool runs git.
func (b *builder) others() (out []repos.Repo) {
	b.look()
	found, complete := b.out.before.Found()
	b.shutAll(b.out.before.Shut())
	for _, dir := range b.in.Write {
		more, shut, all := repos.Find(dir, repos.Search)
		b.shutAll(shut)
		found, complete = append(found, more...), complete && all
	}
	if !complete {
		b.out.Notes = append(b.out.Notes, fmt.Sprintf("guard: only %d directories were searched for repositories to guard; name a narrower workspace", repos.Search))
	}
	for _, g := range b.caches {
		more, shut := g.repositories()
		found = append(found, more...)
		b.shutAll(shut)
	}
	if b.repo.file && b.repo.common == "" { // not verified, and yet in the workspace, perhaps
		out = append(out, repos.Repo{Top: b.repo.top, Git: b.repo.dotGit, Kind: repos.File})
	}
	for _, r := range found {
		if r.Git != b.repo.dotGit && r.Git != b.repo.common && b.grantedAbove(r.Git) { // what is read-only already may name other places
			out = append(out, r)
		}
	}
	return out
}

// repositories finds those that a tool keeps in a cache.
func (g Grant) repositories() (out []repos.Repo, shut []repos.Shut) {
	if !g.Write {
		return nil, nil
	}
	for _, name := range g.Repositories {
		dirs, more := repos.Places{Dir: g.Path, Pattern: name}.Matches()
		shut = append(shut, more...)
		for _, dir := range dirs {
			switch {
			case !isDir(dir):
			case filepath.Base(dir) == ".git":
				out = append(out, repos.Repo{Top: filepath.Dir(dir), Git: dir, Kind: repos.Dir})
			default:
				out = append(out, repos.Repo{Top: dir, Git: dir, Kind: repos.Bare})
			}
		}
	}
	return out, shut
}

// look takes the state of what the command may write.
func (b *builder) look() {
	var watch []repos.Places
	for _, g := range b.caches {
		if g.Write {
			for _, name := range slices.Concat(g.Repositories, g.Execute) {
				if strings.ContainsRune(name, '*') {
					watch = append(watch, repos.Places{Dir: g.Path, Pattern: name})
				}
			}
		}
	}
	b.out.guarded, b.out.before = true, repos.Look(b.repo.top, repos.Search, watch...)
}

// guardOther guards one of them.
func (b *builder) guardOther(r repos.Repo) error {
	switch r.Kind {
	case repos.Link:
		return fmt.Errorf("%q is a symbolic link, which a command could replace", r.Git)
	case repos.File:
		return b.firstOf(func(add adder) {
			add(r.Git, "leads git to another directory")
			switch dir := repos.Common(repos.Pointed(r.Git)); {
			case dir == "":
			case b.grantedAbove(dir):
				b.guardTarget(target{dir, r.Top}, add)
			default: // the host's git obeys it all the same
				b.guardNamed(target{dir, r.Top}, add)
			}
		})
	}
	return b.firstOf(func(add adder) { b.guardTarget(target{r.Git, r.Top}, add) })
}

// guardTarget guards one common directory with its linked worktrees and submodules.
func (b *builder) guardTarget(t target, add adder) {
	b.addAll(add, t.dir, GitGuarded)
	trees, shut := repos.Places{Dir: t.dir, Pattern: "worktrees/*"}.Matches()
	b.shutAll(shut)
	for _, at := range trees {
		if info, err := os.Lstat(at); err == nil && info.IsDir() {
			b.addAll(add, at, WorktreeGuarded)
			b.guardModules(at, add)
		}
	}
	b.guardModules(t.dir, add)
	b.guardNamed(t, add)
}

// guardModules keeps a command from adding git directories of submodules, which the
// host's `git submodule update` would take for its own, and guards those there are.
// The directory is a readable root and no mount: a mount may not cover what is
// protected in it.
func (b *builder) guardModules(dir string, add adder) {
	at := filepath.Join(dir, Modules.Name)
	if b.kept(at) {
		return
	}
	if info, err := b.stands(at); err != nil || !info.IsDir() {
		add(at, Modules.Why)
		return
	}
	closed := b.close(at)
	found, shut := modules(at, 0, &b.most.modules)
	if !closed { // else they are read-only with it
		b.shutAll(shut)
	}
	for _, module := range found {
		if len(b.out.Guards) == maxGuards {
			add(module, Modules.Why) // which says so
			return
		}
		if closed { // what is in it stays the command's
			b.writable(module)
		}
		t := target{module, module}
		config, _ := b.git.config(filepath.Join(module, "config")) // what it could not read, guardNamed says
		if back := last(config, "core.worktree"); back != "" {
			t.top = repos.Joined(module, back)
			if file := filepath.Join(t.top, ".git"); b.grantedAbove(file) && exists(file) {
				add(file, "leads git to another directory")
			}
		}
		b.guardTarget(t, add)
	}
}

// close makes a directory in a writable one read-only, unless the user decided on it.
func (b *builder) close(dir string) bool {
	p := &b.out.Policy
	if b.decided(dir) || b.mounted(dir) || slices.Contains(p.ReadableRoots, dir) {
		return false
	}
	p.ReadableRoots = append(p.ReadableRoots, dir)
	b.out.Guards = append(b.out.Guards, Guard{Path: dir, Why: Modules.Why})
	return true
}

const namedWhy = "is named by git's configuration"

// guardNamed guards what a repository's configuration, or the user's, makes git run
// or read of what is granted, and what its hooks lead to.
func (b *builder) guardNamed(t target, add adder) {
	files := []string{filepath.Join(t.dir, "config"), filepath.Join(t.dir, "config.worktree")}
	more, shut := repos.Places{Dir: t.dir, Pattern: "worktrees/*/config.worktree"}.Matches()
	b.shutAll(shut)
	guard := func(path, why string) {
		if b.grantedAbove(path) {
			add(path, why)
		}
	}
	hooks := []string{filepath.Join(t.dir, "hooks")}
	settings, failed := b.git.settings(append(files, more...), b.reach.home, b.most)
	for _, s := range append(settings, b.user...) {
		paths, later := named(s, t.top, b.reach.home)
		for _, path := range later {
			switch {
			case !b.grantedAbove(path):
			case len(b.out.missing) < maxGuards:
				b.tell(path, namedWhy)
			default:
				failed = append(failed, unread{t.dir, repos.ErrMore})
			}
		}
		for _, path := range paths {
			guard(path, namedWhy)
			if s.key == "core.hookspath" {
				hooks = append(hooks, path)
			}
		}
	}
	slices.Sort(hooks)
	for _, dir := range slices.Compact(hooks) {
		if b.most.hooks--; b.most.hooks < 0 {
			failed = append(failed, unread{dir, repos.ErrMore})
			break
		}
		found, err := links(dir)
		if err != nil {
			failed = append(failed, unread{dir, err})
		}
		for _, path := range found {
			if !within(path, dir) {
				guard(path, "is a hook, through a link")
			}
		}
	}
	b.unnamed(t, failed)
}

// unnamed is for what could not be read though its owner can: a command may have closed
// it, so that what git runs of it elsewhere is not guarded in the next run. Of what the
// workspace's own repository obeys that is refused; another one is closed as a whole.
func (b *builder) unnamed(t target, failed []unread) {
	for _, u := range failed {
		at := seen(u.path)
		if b.decided(u.path) || errors.Is(u.err, fs.ErrPermission) && !repos.Owned(at) {
			continue
		}
		err := fmt.Errorf("cannot look for what git runs in %q: %w; at %q %s, or give --no-guard", u.path, repos.Cause(u.err), at, remedy(at, u.err))
		if errors.Is(u.err, repos.ErrMore) {
			err = fmt.Errorf("cannot look for all that git runs by %q: there is more than is looked at; have git's configuration name less, or give --no-guard", u.path)
		}
		if within(b.repo.top, t.top) || b.repo.common != "" && within(t.dir, filepath.Join(b.repo.common, Modules.Name)) {
			if b.failed == nil {
				b.failed = shutError{err}
			}
			return
		}
		b.shutAll([]repos.Shut{{Dir: t.top, Err: u.err}})
	}
}

// seen is the nearest place at or above a path that can be seen: the mode that keeps this
// user from the path is its.
func seen(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// maxModules bounds the depth of a submodule's name.
const maxModules = 8

// modules finds the git directories of submodules; a name may have slashes. shut are
// the directories with what could not be looked at.
func modules(dir string, depth int, most *int) (found []string, shut []repos.Shut) {
	entries, err := some(dir, *most)
	*most -= len(entries)
	if err == nil && depth > maxModules && len(entries) > 0 {
		err = repos.ErrMore
	}
	if err = repos.Usable(dir, err); err != nil || depth > maxModules {
		if err != nil {
			shut = append(shut, repos.Shut{Dir: dir, Err: err})
		}
		return nil, shut
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		_, err := os.Lstat(filepath.Join(at, "HEAD"))
		switch {
		case !e.IsDir():
		case err == nil:
			found = append(found, at)
		default:
			more, closed := modules(at, depth+1, most)
			found, shut = append(found, more...), append(shut, closed...)
		}
	}
	return found, shut
}

// enclosing finds the repository around a directory, as git does from its parent up:
// no part of what is granted, but its configuration may name places there.
func enclosing(dir string) (target, bool) {
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		found, _, _ := repos.Find(up, 1)
		for _, r := range found {
			switch r.Kind {
			case repos.File:
				return target{repos.Common(repos.Pointed(r.Git)), up}, true
			default:
				return target{r.Git, up}, true
			}
		}
		if up == filepath.Dir(up) {
			return target{}, false
		}
	}
}
