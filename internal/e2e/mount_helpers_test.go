//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// site is one user's directory for a test of the mounts, with a workspace in it.
// It lies outside /tmp, which a private scratch covers and where no link may be
// followed.
type site struct {
	t   *testing.T
	u   testenv.User
	dir string
	ws  string
}

// eachSite runs a test for root and for an ordinary user.
func eachSite(t *testing.T, f func(t *testing.T, s *site)) {
	t.Helper()
	testenv.EachUser(t, func(t *testing.T, u testenv.User) { f(t, newSite(t, u)) })
}

func newSite(t *testing.T, u testenv.User) *site {
	t.Helper()
	dir := testenv.OutsideTmp(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, u: u, dir: dir, ws: dir + "/ws"}
	s.own(dir)
	s.mkdir("ws")
	return s
}

func (s *site) own(path string) {
	s.t.Helper()
	if err := os.Lchown(path, s.u.UID, s.u.GID); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) path(rel string) string { return filepath.Join(s.dir, rel) }

func (s *site) mkdir(rel string) string {
	s.t.Helper()
	at := s.dir
	for _, name := range strings.Split(rel, "/") {
		at = filepath.Join(at, name)
		if err := os.Mkdir(at, 0o755); err == nil {
			s.own(at)
		}
	}
	return at
}

func (s *site) write(rel, text string) string {
	s.t.Helper()
	s.mkdir(filepath.Dir(rel))
	write(s.t, s.path(rel), text)
	s.own(s.path(rel))
	return s.path(rel)
}

func (s *site) link(target, rel string) string {
	s.t.Helper()
	if err := os.Symlink(target, s.path(rel)); err != nil {
		s.t.Fatal(err)
	}
	s.own(s.path(rel))
	return s.path(rel)
}

// read gives a file of the host.
func (s *site) read(rel string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(rel))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

func (s *site) exists(rel string) bool {
	_, err := os.Lstat(s.path(rel))
	return err == nil
}

// policy is the workspace policy with changes.
func (s *site) policy(change ...func(*protocol.Policy)) protocol.Policy {
	p := basePolicy(s.ws)
	for _, f := range change {
		f(&p)
	}
	return p
}

// protect adds paths below the site to the protected list.
func (s *site) protect(rels ...string) func(*protocol.Policy) {
	return func(p *protocol.Policy) {
		for _, rel := range rels {
			p.Protected = append(p.Protected, s.path(rel))
		}
	}
}

// onHost runs a script in the workspace, outside any jail, as the site's user.
func (s *site) onHost(script string) string {
	s.t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = s.ws
	testenv.As(s.t, cmd, s.u)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("on the host: %v: %s\n%s", err, script, out)
	}
	return string(out)
}

// repository makes a git repository of the workspace: f and secret files, one commit.
func (s *site) repository(tracked ...string) {
	s.t.Helper()
	s.t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	s.write("ws/f", "one\n")
	for _, rel := range tracked {
		s.write("ws/"+rel, "secret of "+rel+"\n")
	}
	s.onHost(`git init -q -b main . && git config user.email a@example.org && git config user.name A &&
git config gc.auto 0 && mkdir -p .git/hooks && git add -A && git commit -qm one`)
}

// jail runs a script in the workspace under a policy of its own helper, which has
// ended when it returns.
func (s *site) jail(p protocol.Policy, script string, args ...string) result {
	s.t.Helper()
	c := connect(s.t, s.u, p, args...)
	r := c.try(2, s.ws, script)
	s.end(c)
	return r
}

// end shuts a helper down and waits for it: what it cleans up is cleaned up then.
func (s *site) end(c *conn) {
	s.t.Helper()
	c.send(1<<40, protocol.Shutdown{})
	if code := c.wait(); code != 0 {
		s.t.Errorf("the helper exits with %d: %s", code, c.stderr)
	}
}

// refused gives the message with which a policy is refused.
func (s *site) refused(p protocol.Policy) string {
	s.t.Helper()
	c := connect(s.t, s.u, p)
	c.start(2, s.ws, "true")
	r := c.collect(2)
	s.end(c)
	if r.fail == nil || r.fail.Code != protocol.CodeRefused {
		s.t.Fatalf("got %+v, %+v, expected a refusal", r.exit, r.fail)
	}
	return r.fail.Msg
}

// expect compares a script's output, both streams together.
func (s *site) expect(r result, want string) {
	s.t.Helper()
	if got := r.stdout + r.stderr; got != want {
		s.t.Errorf("got:\n%s\nwant:\n%s\nreport: %q", got, want, r.exit.Enforcement)
	}
}

// tree describes everything below the site but git's own files.
func (s *site) tree() string {
	s.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a helper takes it away just now
			fmt.Fprintf(&b, "gone: %s\n", path)
			return nil
		}
		if err != nil {
			return err
		}
		if d.Name() == ".git" && d.IsDir() {
			return filepath.SkipDir
		}
		i, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(&b, "gone: %s\n", path)
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s", i.Mode(), path)
		if d.Type() == 0 {
			fmt.Fprintf(&b, " %d", i.Size())
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return b.String()
}

// unchanged compares the tree with an earlier one.
func (s *site) unchanged(before string) {
	s.t.Helper()
	if now := s.tree(); now != before {
		s.t.Errorf("something is left behind or gone:\n%s\nbefore:\n%s", now, before)
	}
}

// entry finds the report's entry of a tag.
func entry(t *testing.T, r result, tag string) string {
	t.Helper()
	for _, e := range r.exit.Enforcement {
		if e == tag || strings.HasPrefix(e, tag+":") {
			return e
		}
	}
	t.Errorf("no %s in %q", tag, r.exit.Enforcement)
	return ""
}

// mountSkips are the report's words about mounts that are not as asked.
func mountSkips(r result) string {
	var out []string
	for _, e := range r.exit.Enforcement {
		if strings.HasPrefix(e, "skip:mounts:") {
			out = append(out, e)
		}
	}
	return strings.Join(out, "\n")
}

// try is a shell function for the scripts: it runs a command quietly and says
// whether it worked.
const try = `try() { n=$1; shift; if ( eval "$*" ) >/dev/null 2>&1; then echo "$n yes"; else echo "$n no"; fi; }
`
