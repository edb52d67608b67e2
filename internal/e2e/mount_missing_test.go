//go:build linux

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

func TestMountMissingPaths(t *testing.T) {
	const attack = try + `mkdir d
try file ': >.netrc'
try inside ': >.netrc/x'
try over mv -T d .netrc
try remove rmdir .netrc
try move mv .netrc n
try link ln -sfn f .netrc/x
try deep mkdir -p .cfg/deep
try "deep file" ': >.cfg/deep/x'
try away mv .cfg c
rm -rf d; git status --porcelain
`
	eachSite(t, func(t *testing.T, s *site) {
		s.repository()
		before := s.tree()
		r := s.jail(s.policy(s.protect("ws/.netrc", "ws/.cfg/deep/x")), attack)
		s.expect(r, "file no\ninside no\nover no\nremove no\nmove no\nlink no\ndeep no\ndeep file no\naway no\n")
		if !strings.Contains(entry(t, r, "mounts"), "mask=2,absent=0") {
			t.Errorf("report: %q", r.exit.Enforcement)
		}
		s.unchanged(before)
		s.jail(s.policy(), ": >.netrc; mkdir -p .cfg/deep; : >.cfg/deep/x")
		if !s.exists("ws/.netrc") || !s.exists("ws/.cfg/deep/x") {
			t.Error("the control could not make them")
		}
	})
}

// A killed helper cannot clean up: the next execution that plans the mask does.
func TestMountKilledHelperLeavesNothing(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		before := s.tree()
		p := s.policy(s.protect("ws/.netrc", "ws/.cfg/deep/x"))
		c := connect(t, s.u, p)
		c.start(2, s.ws, "sh", "-c", "echo ready; exec sleep 600")
		c.waitOut(2, "ready")
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.wait()
		if !s.exists("ws/.netrc") || !s.exists("ws/.cfg") {
			t.Fatal("the control: no placeholder was there to be left")
		}
		// Until the killed helper's jail is gone its placeholder must stay.
		testenv.Eventually(t, "the removal of the leftover", func() bool {
			s.expect(s.jail(p, "echo ran"), "ran\n")
			return s.tree() == before
		})
	})
}

// spinner leaves a daemon behind that tries to make the protected name, and
// something in it, until it dies with its namespace.
const spinner = `/usr/bin/perl -e 'fork and exit 0; close STDOUT; close STDERR;
while (1) { mkdir ".netrc/x"; mkdir ".netrc"; open F, ">", ".netrc" and close F }'
`

// Two helpers share a workspace with a missing protected path. Anything that a
// daemon ever manages to make under the name stays on the host and is found.
func TestMountTwoHelpersShareAPlaceholder(t *testing.T) {
	needPerl(t)
	const rounds, killEvery = 200, 10
	eachSite(t, func(t *testing.T, s *site) {
		before := s.tree()
		p := s.policy(s.protect("ws/.netrc"))
		pair := []*conn{connect(t, s.u, p), connect(t, s.u, p)}
		for n := range rounds {
			id := uint64(n + 2)
			for i, c := range pair {
				script := spinner + try + "try make 'mkdir .netrc/y || : >.netrc'\n"
				kill, late := n%killEvery == i*killEvery/2+1, n%(2*killEvery) >= killEvery
				if kill && late {
					script += "exec sleep 600"
				}
				c.start(id, s.ws, "sh", "-c", script)
				if kill && late { // while its daemon spins; else while the jail is being made
					if got := c.waitOut(id, "make"); !strings.HasPrefix(got, "make no") {
						t.Fatalf("round %d: got %q", n, got)
					}
				}
				if kill {
					if err := c.cmd.Process.Kill(); err != nil {
						t.Fatal(err)
					}
					c.wait()
					pair[i] = nil
				}
			}
			for i, c := range pair {
				if c == nil {
					pair[i] = connect(t, s.u, p)
					continue
				}
				if r := c.collect(id); r.exit == nil || r.stdout != "make no\n" {
					t.Fatalf("round %d: got %q, %q, %+v, %+v", n, r.stdout, r.stderr, r.exit, r.fail)
				}
			}
			if entries, err := os.ReadDir(s.path("ws/.netrc")); err == nil && len(entries) > 0 {
				t.Fatalf("round %d: %q was made", n, entries[0].Name())
			}
		}
		for _, c := range pair {
			s.end(c)
		}
		testenv.Eventually(t, "the removal of the leftover", func() bool {
			s.jail(p, "true")
			return s.tree() == before
		})
		// The control: the daemon does make it where nothing is protected.
		s.jail(s.policy(), spinner+"until [ -e .netrc ]; do :; done")
		if !s.exists("ws/.netrc") {
			t.Error("the control's daemon made nothing")
		}
	})
}

func needPerl(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		testenv.Skip(t, "tool:perl", err.Error())
	}
}

// The host may make a missing path while the jail runs: it stays the host's.
func TestMountMissingPathMadeByTheHost(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		p := s.policy(s.protect("ws/.cfg/deep/x"))
		c := connect(t, s.u, p)
		c.start(2, s.ws, "sh", "-c", "echo ready; cat; cat .cfg/deep/x 2>&1")
		c.waitOut(2, "ready")
		s.onHost("mkdir .cfg/deep && echo secret >.cfg/deep/x")
		c.send(2, protocol.ExecStdin{EOF: true})
		r := c.collect(2)
		s.end(c)
		if r.exit == nil || strings.Contains(r.stdout, "secret") {
			t.Errorf("got %+v, %+v", r, r.fail)
		}
		if got := s.read("ws/.cfg/deep/x"); got != "secret\n" {
			t.Errorf("on the host: %q", got)
		}
		s.expect(s.jail(s.policy(), "cat .cfg/deep/x"), "secret\n") // the control
	})
}

// A directory whose own mode keeps the command out is kept in its place: renaming it
// needs write access to its parent only.
func TestMountBelowAnotherUsersDirectory(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "makes another user's directory")
	}
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	for name, mode := range map[string]os.FileMode{"o755": 0o755, "o700": 0o700} {
		must(t, os.Mkdir(filepath.Join(dir, name), mode))
		must(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	p := basePolicy(dir)
	script := `for d in o755 o700; do mv $d moved-$d && mkdir $d && echo evil >$d/x; done; true`
	p.Protected = []string{dir + "/o755/x", dir + "/o700/x"}
	connect(t, u, p).try(2, dir, script)
	for _, d := range []string{"o755", "o700"} {
		if b, err := os.ReadFile(filepath.Join(dir, d, "x")); err == nil {
			t.Errorf("%s/x was made on the host: %q", d, b)
		}
	}
	p.Protected = nil
	connect(t, u, p).try(2, dir, script)
	if _, err := os.ReadFile(filepath.Join(dir, "o755", "x")); err != nil {
		t.Errorf("the control failed: %v", err)
	}
}

// A placeholder is known by its mark, whatever mode its directory or the umask gives.
func TestMountPlaceholderInASetgidDirectory(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	must(t, os.Chmod(dir, 0o775|os.ModeSetgid))
	p := basePolicy(dir)
	p.Protected = []string{dir + "/.netrc"}
	a := connect(t, u, p)
	a.start(2, dir, "sh", "-c", "echo up; sleep 60")
	a.waitOut(2, "up")
	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.cmd.Wait()
	testenv.Eventually(t, "the killed helper's placeholder is removed", func() bool {
		b := connect(t, u, p)
		b.sh(2, dir, "true")
		b.send(3, protocol.Shutdown{})
		b.wait()
		_, err := os.Lstat(dir + "/.netrc")
		return errors.Is(err, os.ErrNotExist)
	})
}
