//go:build linux

package e2e

import (
	"strings"
	"testing"

	"sandboxd/protocol"
)

// Renaming a directory above a mount point is legal unless it is one itself.
func TestMountHooksBehindARenamedGit(t *testing.T) {
	const attack = try + `try rename mv .git g
mkdir -p .git/hooks 2>/dev/null
try plant 'echo evil > .git/hooks/pre-commit'
try remove rm -rf .git/hooks
`
	eachSite(t, func(t *testing.T, s *site) {
		s.repository()
		s.write("ws/.git/hooks/pre-commit", "good\n")
		s.expect(s.jail(s.policy(s.protect("ws/.git/hooks")), attack), "rename no\nplant no\nremove no\n")
		if got := s.read("ws/.git/hooks/pre-commit"); got != "good\n" || s.exists("ws/g") {
			t.Errorf("the hook on the host: %q", got)
		}
		s.expect(s.jail(s.policy(), attack), "rename yes\nplant yes\nremove yes\n")
		if s.exists("ws/.git/hooks") || !s.exists("ws/g") {
			t.Error("the control did not get through")
		}
	})
}

func TestMountGitWorksBesideProtectedHooks(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.repository()
		s.write("ws/.git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")
		s.onHost("chmod +x .git/hooks/pre-commit")
		r := s.jail(s.policy(s.protect("ws/.git/hooks", "ws/.git/commondir")), `set -e
echo two >>f; git commit -qam two
git checkout -qb topic HEAD~1; echo z >z; git add z; git commit -qm z
git rebase -q main
git gc -q
git worktree add -q wt; cd wt; echo w >w; git add w; git commit -qm w; cd ..
git fsck
git log --format=%s --all | sort`)
		s.expect(r, "one\ntwo\nw\nz\n")
		// The control: the host runs the hook, so it was there all the time.
		if got := s.onHost("echo three >>f; git commit -qam three || echo stopped by the hook"); got != "stopped by the hook\n" {
			t.Errorf("got %q", got)
		}
	})
}

// Every way of getting at a protected file, then what git makes of it.
func TestMountProtectedFile(t *testing.T) {
	const ways = try + `try read cat .env
try write 'echo x >.env'
try append 'echo x >>.env'
try truncate truncate -s 0 .env
try chmod chmod 644 .env
try move mv .env e
try replace 'echo x >r; mv -f r .env'
try link ln .env e
try symlink ln -sf f .env
try remove rm -f .env
try "regular file" test -f .env
try empty '! test -s .env'
try copy cp .env e
rm -rf r e
`
	eachSite(t, func(t *testing.T, s *site) {
		s.repository(".env")
		before := s.tree()
		s.expect(s.jail(s.policy(s.protect("ws/.env")), ways), `read no
write no
append no
truncate no
chmod no
move no
replace no
link no
symlink no
remove no
regular file yes
empty yes
copy no
`)
		s.unchanged(before)
		if got := s.read("ws/.env"); got != "secret of .env\n" {
			t.Errorf("on the host: %q", got)
		}
		r := s.jail(s.policy(), ways)
		for _, way := range []string{"read", "write", "append", "chmod", "move", "replace", "link", "symlink", "remove"} {
			if way != "link" && way != "symlink" && way != "read" && !strings.Contains(r.stdout, way+" yes\n") {
				t.Errorf("the control could not %s: %q", way, r.stdout)
			}
		}
	})
}

// versions lists every content that a path has in any commit, stashes included.
const versions = `for c in $(git rev-list --all --reflog); do echo "<$(git show "$c:%" 2>/dev/null || echo absent)>"; done | sort -u`

func TestMountStashBesideAProtectedFile(t *testing.T) {
	const stash = `echo two >>f
git stash >out 2>&1; echo "stash $?"; git stash list | wc -l
git add -A >>out 2>&1; echo "add $?"
git commit -qam two >>out 2>&1; echo "commit $?"
git diff HEAD --stat >/dev/null 2>&1
rm -f out; git checkout -q -- f; cat f`
	eachSite(t, func(t *testing.T, s *site) {
		s.repository(".env")
		r := s.jail(s.policy(s.protect("ws/.env")), stash)
		s.expect(r, "stash 1\n0\nadd 128\ncommit 128\none\n")
		if got := s.onHost(strings.ReplaceAll(versions, "%", ".env")); got != "<secret of .env>\n" {
			t.Errorf("committed: %q", got)
		}
		if got := s.onHost("git status --porcelain"); got != "" {
			t.Errorf("status on the host: %q", got)
		}
		// The control: what a readable, empty file would have done.
		s.jail(s.policy(), ": >.env; git commit -qam empty")
		if got := s.onHost(strings.ReplaceAll(versions, "%", ".env")); got != "<>\n<secret of .env>\n" {
			t.Errorf("the control committed %q", got)
		}
		// Committing by name works all the same.
		s.onHost("git reset -q --hard HEAD~1")
		s.expect(s.jail(s.policy(s.protect("ws/.env")), "echo two >>f; git commit -qm two f && git status --porcelain"), " M .env\n")
	})
}

func TestMountTrackedDirectory(t *testing.T) {
	const commit = `echo two >>f
git add -A >/dev/null 2>&1; echo "add $?"
git commit -qam two >/dev/null 2>&1; echo "commit $?"
git stash -q >/dev/null 2>&1
git ls-tree -r --name-only HEAD`
	eachSite(t, func(t *testing.T, s *site) {
		s.repository("keys/a", "keys/deep/b")
		r := s.jail(s.policy(s.protect("ws/keys")), commit)
		if !strings.HasSuffix(r.stdout, "f\nkeys/a\nkeys/deep/b\n") {
			t.Errorf("got %q, %q", r.stdout, r.stderr)
		}
		for _, rel := range []string{"keys/a", "keys/deep/b"} {
			if got := s.onHost(strings.ReplaceAll(versions, "%", rel)); got != "<secret of "+rel+">\n" {
				t.Errorf("%s was committed as %q", rel, got)
			}
		}
		s.jail(s.policy(), "rm -r keys; git commit -qam gone")
		if got := s.onHost("git ls-tree -r --name-only HEAD"); got != "f\n" {
			t.Errorf("the control: %q", got)
		}
	})
}

// In a worktree .git is a file: nothing can be masked below it, so it must stay one.
func TestMountWorktree(t *testing.T) {
	const attack = try + `try remove rm -f .git
try move mv .git g
try plant 'mkdir -p .git/hooks && echo evil >.git/hooks/pre-commit'
`
	eachSite(t, func(t *testing.T, s *site) {
		s.repository()
		s.onHost("git worktree add -q ../wt")
		wt := s.path("wt")
		p := s.policy(s.protect("wt/.git/hooks", "ws/.git/hooks"))
		p.WritableRoots = append(p.WritableRoots, wt)
		c := connect(t, s.u, p)
		r := c.try(2, wt, attack+`echo w >w; git add w; git commit -qm w; git log --format=%s`)
		s.end(c)
		s.expect(r, "remove no\nmove no\nplant no\nw\none\n")
		if got := s.read("wt/.git"); !strings.HasPrefix(got, "gitdir: ") {
			t.Errorf(".git on the host: %q", got)
		}
		p.Protected = nil
		c = connect(t, s.u, p)
		r = c.try(2, wt, attack)
		s.end(c)
		if !strings.Contains(r.stdout, "remove yes") || !strings.Contains(r.stdout, "plant yes") {
			t.Errorf("the control: %q", r.stdout)
		}
	})
}

func TestMountReadOnlyGitConfig(t *testing.T) {
	const attack = try + `try read git config user.name
try write 'echo x >>.git/config'
try set git config core.fsmonitor evil
try replace 'cp .git/config c; mv -f c .git/config'
try remove rm -f .git/config
try rename 'mv .git g && mkdir .git && cp -r g/* .git && echo evil >>.git/config'
rm -rf c; echo two >>f; git commit -qam two 2>/dev/null && echo committed
`
	eachSite(t, func(t *testing.T, s *site) {
		s.repository()
		before := s.read("ws/.git/config")
		p := s.policy(func(p *protocol.Policy) {
			p.Mounts = []protocol.Mount{{Path: s.path("ws/.git/config"), Access: protocol.ReadOnly, Required: true}}
		})
		r := s.jail(p, attack)
		s.expect(r, "read yes\nwrite no\nset no\nreplace no\nremove no\nrename no\ncommitted\n")
		if !strings.Contains(entry(t, r, "mounts"), "bind_ro=1") || mountSkips(r) != "" {
			t.Errorf("report: %q", r.exit.Enforcement)
		}
		if s.read("ws/.git/config") != before || s.exists("ws/g") {
			t.Error("the configuration was changed on the host")
		}
		if r := s.jail(s.policy(), attack); !strings.HasPrefix(r.stdout, "read yes\nwrite yes\n") {
			t.Errorf("the control: %q", r.stdout)
		}
	})
}
