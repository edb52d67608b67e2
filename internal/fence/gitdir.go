package fence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sandboxd/internal/fence/repos"
)

// repository is what is known of the workspace's repository.
type repository struct {
	top    string   // the workspace, physical
	dotGit string   // top/.git where there is one
	file   bool     // .git is a file: a linked worktree or a submodule
	link   bool     // .git is a symbolic link
	admin  string   // of a linked worktree: its directory in the common one
	common string   // the directory with hooks and config, "" where it is not known
	grants []string // outside the workspace, verified
}

// findRepository looks at the workspace's own .git. A repository above the workspace
// is no part of it and stays read-only or invisible.
func (b *builder) findRepository(writable []string) error {
	top := b.reach.layout.Resolve(b.in.Workspace).Path
	b.repo = repository{top: top}
	at := filepath.Join(top, ".git")
	info, err := os.Lstat(at)
	if err != nil {
		if found, _, _ := repos.Find(top, 1); len(found) > 0 {
			b.repo.common = top // the workspace is a bare repository
		}
		return nil
	}
	b.repo.dotGit = at
	switch {
	case info.IsDir():
		b.repo.common = at
		// A main worktree has none: what is in it, the guard would only keep.
		if text, err := repos.ReadPointer(filepath.Join(at, "commondir")); err == nil && filepath.Clean(text) != "." {
			b.out.Notes = append(b.out.Notes, fmt.Sprintf("%q exists and leads git to the configuration and hooks of another directory; remove it if you did not make it", filepath.Join(at, "commondir")))
		}
	case info.Mode()&os.ModeSymlink != 0:
		b.repo.link = true
	default:
		b.repo.file = true
		if why := b.pointed(writable); why != "" {
			b.out.Notes = append(b.out.Notes, fmt.Sprintf("git directory of %q: not granted: %s", top, why))
		}
	}
	return nil
}

// ownConfig lists the files that git reads in the workspace beside the user's own.
func (b *builder) ownConfig() (files []string) {
	common, admin := b.repo.common, b.repo.admin
	if common == "" {
		t, _ := enclosing(b.repo.top)
		common = t.dir
	}
	if common == "" {
		return nil
	}
	if admin == "" {
		admin = common
	}
	return []string{filepath.Join(common, "config"), filepath.Join(admin, "config.worktree")}
}

// pointed follows a .git file, which an earlier command may have written: what it
// names counts only if that names this worktree back.
func (b *builder) pointed(writable []string) (why string) {
	r := &b.repo
	text, err := repos.ReadPointer(r.dotGit)
	if err != nil {
		return err.Error()
	}
	target, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return "its .git file names none"
	}
	dir, why := b.trusted(repos.Joined(r.top, target), writable)
	if why != "" {
		return why
	}
	back, err := repos.ReadPointer(filepath.Join(dir, "gitdir"))
	if err != nil {
		return b.submodule(dir)
	}
	return b.worktree(dir, repos.Joined(dir, back), writable)
}

// worktree verifies a linked worktree: its directory names this worktree's .git, and
// lies in the worktrees of the common directory that it names.
func (b *builder) worktree(dir, back string, writable []string) string {
	r := &b.repo
	if filepath.Base(back) != ".git" || !samePlace(filepath.Dir(back), r.top) {
		return fmt.Sprintf("%q is the git directory of another worktree", dir)
	}
	text, err := repos.ReadPointer(filepath.Join(dir, "commondir"))
	if err != nil {
		return err.Error()
	}
	common, why := b.trusted(repos.Joined(dir, text), writable)
	if why != "" {
		return why
	}
	if filepath.Dir(dir) != filepath.Join(common, "worktrees") || !isDir(filepath.Join(common, "objects")) {
		return fmt.Sprintf("%q is not one of the worktrees of %q", dir, common)
	}
	r.admin, r.common = dir, common
	b.outside(common)
	return ""
}

// submodule verifies a submodule: its git directory's core.worktree is this one.
func (b *builder) submodule(dir string) string {
	list, _ := b.git.config(filepath.Join(dir, "config"))
	back := last(list, "core.worktree")
	if back == "" || !samePlace(repos.Joined(dir, back), b.repo.top) {
		return fmt.Sprintf("%q names no worktree, or another one", dir)
	}
	b.repo.common = dir
	b.outside(dir)
	return ""
}

// outside grants a directory that the workspace does not hold.
func (b *builder) outside(dir string) {
	if !within(dir, b.repo.top) {
		b.repo.grants = append(b.repo.grants, dir)
	}
}

// trusted reaches a directory that a file names, as any candidate.
func (b *builder) trusted(path string, writable []string) (physical, why string) {
	if !usable(path) {
		return "", fmt.Sprintf("%q is no usable path", path)
	}
	home, _ := b.in.Env("HOME")
	r, err := reach([]string{path}, writable, home, b.in.Workspace)
	if err != nil {
		return "", err.Error()
	}
	physical, _, why = r.grant(path, false)
	if why != "" {
		why = fmt.Sprintf("%q: %s", path, why)
	}
	return physical, why
}

func realPath(path string) (string, error) { return filepath.EvalSymlinks(path) }

// samePlace says whether two directories are one.
func samePlace(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
