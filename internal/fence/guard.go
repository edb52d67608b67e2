package fence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/fence/repos"
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
	if err := b.guardRepositories(); err != nil {
		return err
	}
	defer b.sayClosed()
	defer func() { b.out.path = b.searched(); b.out.first, _ = b.out.path.before() }() // with every guard known
	return b.firstOf(func(add adder) {
		if entries, err := os.ReadDir(b.repo.top); len(entries) > 0 || !repos.Absent(err) && err != nil {
			b.addAll(add, b.repo.top, WorkspaceGuarded)
		} else { // git clones into no directory that holds a placeholder
			for _, g := range WorkspaceGuarded {
				b.tell(filepath.Join(b.repo.top, g.Name), g.Why)
			}
		}
		b.guardHome(add)
		if self, err := realPath(b.in.Self); b.in.Self != "" && err == nil && b.grantedAbove(self) {
			add(self, "is this program, which you run outside")
		}
		for _, g := range b.caches {
			for _, path := range b.executed(g) {
				add(path, "is run, or read as configuration, by "+g.Tool)
			}
		}
	})
}

// adder guards one path.
type adder func(path, why string)

// firstOf runs a function that guards paths, all of them, and gives the first error, or
// that of a directory that could not be closed.
func (b *builder) firstOf(all func(add adder)) (err error) {
	all(func(path, why string) {
		if e := b.add(path, why); err == nil {
			err = e
		}
	})
	if b.failed != nil {
		err, b.failed = b.failed, nil
	}
	return err
}

// executed lists what of a cache a tool runs: places that are there, and a name
// without a pattern where its directory is, for a placeholder covers the first
// missing component and all that the tool wants to put there.
func (b *builder) executed(g Grant) (paths []string) {
	if !slices.Contains(b.out.Policy.WritableRoots, g.Path) {
		return nil
	}
	for _, name := range g.Execute {
		at := filepath.Join(g.Path, name)
		if strings.ContainsRune(name, '*') {
			found, shut := repos.Places{Dir: g.Path, Pattern: name}.Matches()
			paths = append(paths, found...)
			b.shutAll(shut)
		} else if _, err := os.Stat(filepath.Dir(at)); isDir(filepath.Dir(at)) || os.IsPermission(err) {
			paths = append(paths, at)
		}
	}
	return paths
}

// addAll guards a list. What is missing and cannot be kept away is told afterwards.
func (b *builder) addAll(add adder, dir string, list []Guarded) {
	for _, g := range list {
		switch at := filepath.Join(dir, g.Name); {
		case !g.IfThere || exists(at):
			add(at, g.Why)
		default:
			b.tell(at, g.Why)
		}
	}
}

// tell has it said when the command makes what is missing, unless the user opened or hid it.
func (b *builder) tell(path, why string) {
	if !b.decided(path) && !slices.ContainsFunc(b.out.missing, func(g Guard) bool { return g.Path == path }) {
		b.out.missing = append(b.out.missing, Guard{path, why, true})
	}
}

// maxGuards bounds the guarded paths: a command can make any number of worktrees, and
// each path is looked at for a while.
const maxGuards = 2048

// add guards one path, unless the user opened or hid it by name.
func (b *builder) add(path, why string) error {
	if b.decided(path) || slices.ContainsFunc(b.out.Guards, func(g Guard) bool { return g.Path == path }) {
		return nil
	}
	if len(b.out.Guards) == maxGuards {
		return fmt.Errorf("cannot guard %q: there are %d such paths already, and a policy takes few more; name a narrower workspace, or give --no-guard", path, maxGuards)
	}
	found, err := b.walk(path)
	if err != nil || found == closed {
		return err
	}
	missing := found == absent
	if missing && b.mounted(path) {
		return fmt.Errorf("cannot keep %q from being made: it lies in a mount; grant its directory with --rw", path)
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

// What walk finds.
const (
	there = iota
	absent
	closed // with a directory above, to this user or to the command
)

// walk goes to a path from what is granted above it. No link may be on the way.
func (b *builder) walk(path string) (found int, err error) {
	if b.kept(path) {
		return closed, nil
	}
	for at := b.anchor(path); at != path; {
		rest := strings.TrimPrefix(strings.TrimPrefix(path, at), "/")
		name, _, _ := strings.Cut(rest, "/")
		dir := at
		at = filepath.Join(at, name)
		info, err := b.stands(at)
		switch {
		case os.IsNotExist(err):
			return absent, nil
		case os.IsPermission(err):
			b.barred(dir, err)
			return closed, nil
		case err != nil:
			return there, fmt.Errorf("cannot guard %q: %w; give --no-guard if it need not be", path, err)
		case info.Mode()&os.ModeSymlink != 0:
			return there, unguardable(at)
		}
	}
	return there, nil
}

// How long a placeholder is without its mark after it was made, at most, and how long
// all that a command has just made may keep a run waiting for that.
const (
	unmarked = 50 * time.Millisecond
	look     = 5 * time.Millisecond
	waiting  = 2 * time.Second
)

// stands says what is at a path. A placeholder of another run in this workspace, or of
// one that was killed, is nothing: as a mount it would be gone by the time it is
// bound, or would be taken away under the command. One that is being made just now
// has no mark yet, one that is being removed no longer.
func (b *builder) stands(at string) (os.FileInfo, error) {
	begin := time.Now()
	end := begin.Add(min(unmarked, waiting-b.waited))
	defer func() { b.waited += time.Since(begin) }()
	for ; ; time.Sleep(look) {
		info, err := os.Lstat(at)
		if err != nil {
			return nil, err
		}
		if roots.IsPlaceholder(at) {
			return nil, os.ErrNotExist
		}
		again, err := os.Lstat(at)
		steady := err == nil && os.SameFile(info, again) && !likePlaceholder(at, again)
		if steady || time.Now().After(end) {
			return again, err
		}
	}
}

// likePlaceholder says whether something could be one that was made just now.
func likePlaceholder(at string, info os.FileInfo) bool {
	if age := time.Since(info.ModTime()); age > time.Minute || age < -time.Minute {
		return false
	}
	if !info.IsDir() {
		return info.Size() <= 2
	}
	entries, err := os.ReadDir(at)
	return err != nil || len(entries) == 0
}

// mounted says whether a path lies in an explicit mount, which comes after all that a
// policy grants or protects.
func (b *builder) mounted(path string) bool {
	return slices.ContainsFunc(b.in.Mounted, func(m string) bool { return within(path, m) })
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
	for _, root := range b.granted() {
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
	return slices.ContainsFunc(b.granted(), func(root string) bool { return within(path, root) })
}

// granted lists the directories that a command may write, the user's own included.
func (b *builder) granted() []string {
	list := slices.Concat(b.out.Policy.WritableRoots, []string{b.repo.top}, b.in.Write)
	if b.out.Policy.Scratch != protocol.ScratchTmpfs {
		list = append(list, b.out.Policy.Scratch)
	}
	return list
}

// decided says whether the user's own lists settle a path: a guard below something
// protected, or at or above something opened, would contradict them.
func (b *builder) decided(path string) bool {
	return slices.ContainsFunc(b.in.Hidden, func(h string) bool { return within(path, h) || within(h, path) }) ||
		slices.ContainsFunc(b.in.Open, func(o string) bool { return within(o, path) })
}

// exists says whether something is there, or may be: what cannot be reached.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !repos.Absent(err)
}
