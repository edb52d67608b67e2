//go:build linux

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// hostileRun is what testdata/hostile/hostile.c said.
type hostileRun map[string]string // key -> "ok", or "denied REASON"

func parseHostile(t *testing.T, nonce, text string) hostileRun {
	t.Helper()
	if !strings.HasPrefix(text, "begin "+nonce+"\n") || !strings.HasSuffix(text, "\nend "+nonce+"\n") {
		t.Fatalf("the program did not run from beginning to end: %q", text)
	}
	r := hostileRun{}
	for _, line := range strings.Split(text, "\n") {
		key, rest, _ := strings.Cut(line, " ")
		r[key] = rest
	}
	return r
}

// hostileSite is one fixture: every run gets its own.
type hostileSite struct {
	dir, secret, port, pid string
}

func newHostileSite(t *testing.T, u testenv.User, port, pid string) hostileSite {
	t.Helper()
	s := hostileSite{fixtureDir(t, u), "secret-" + filepath.Base(t.TempDir()), port, pid}
	for path, text := range map[string]string{"work/open": "open", "work/.env": s.secret, "out/file": s.secret, "out/other": "x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(s.dir, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(s.dir, path), text)
	}
	ln, err := net.Listen("unix", filepath.Join(s.dir, "out", "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", u.UID, u.GID), s.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return s
}

func (s hostileSite) path(rel string) string { return filepath.Join(s.dir, rel) }

// byPolicy are the attempts that a policy can grant, byKernel those that none can.
func (s hostileSite) byPolicy() []string {
	return []string{
		"read=" + s.path("out/file"), "append=" + s.path("out/file"), "create=" + s.path("out/new"), "mkdir=" + s.path("out/dir"),
		"symlink=" + s.path("out/link"), "chmod=" + s.path("out/other"), "unlink=" + s.path("out/other"), "replace=" + s.path("out/file"),
		"read2=" + s.path("work/.env"), "append2=" + s.path("work/.env"), "chmod2=" + s.path("work/.env"), "replace2=" + s.path("work/.env"),
		"mkdir2=" + s.path("work/.tool"), "tcp=" + s.port, "unix=" + s.path("out/s"), "env=HOSTILE_BAIT",
	}
}

func (s hostileSite) byKernel(target string) []string {
	return []string{"kill=" + s.pid, "mount=", "unshare=", "chroot=/usr", "mknod=" + s.path("work/device"),
		"mem=" + target, "getfd=" + target, "ptrace=" + target}
}

func (s hostileSite) argv(bin, nonce string, attempts ...string) []string {
	return append([]string{bin, nonce, s.path("work/effect"), "read9=" + s.path("work/open"), "create9=" + s.path("work/made")}, attempts...)
}

func key(attempt string) string { k, _, _ := strings.Cut(attempt, "="); return k }

// The hostile native program: without a jail and with everything granted it succeeds,
// in the jail each attempt is denied, and the host is as it was.
func TestHostileProgram(t *testing.T) {
	bin := hostileTool(t, "hostile")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		needBwrap(t, u)
		victim := exec.Command("sleep", "600")
		testenv.As(t, victim, u)
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		defer victim.Wait()
		defer victim.Process.Kill()
		pid := fmt.Sprint(victim.Process.Pid)
		site := func() hostileSite { return newHostileSite(t, u, port, pid) }

		free := hostileUnjailed(t, u, site(), bin, pid)
		granted := hostileJailed(t, u, site(), bin, true)
		s := site()
		jailed := hostileJailed(t, u, s, bin, false)
		for _, attempt := range s.byPolicy() {
			k := key(attempt)
			if free[k] != "ok" || granted[k] != "ok" {
				t.Errorf("the control of %s: unjailed %q, granted %q", k, free[k], granted[k])
			}
		}
		denied := 0
		for _, attempt := range append(s.byPolicy(), s.byKernel("1")...) {
			k := key(attempt)
			if free[k] == "ok" && !strings.HasPrefix(jailed[k], "denied ") {
				t.Errorf("%s in the jail: %q", k, jailed[k])
			}
			if free[k] == "ok" {
				denied++
			}
		}
		if denied < len(s.byPolicy())+2 {
			t.Errorf("only %d attempts could be shown: %q", denied, free)
		}
		s.untouched(t)
	})
}

func (s hostileSite) untouched(t *testing.T) {
	t.Helper()
	for _, rel := range []string{"out/file", "work/.env"} {
		if b, err := os.ReadFile(s.path(rel)); err != nil || string(b) != s.secret {
			t.Errorf("the host's %s is %q, %v", rel, b, err)
		}
	}
	for _, rel := range []string{"out/new", "out/dir", "out/link", "work/device"} {
		if _, err := os.Lstat(s.path(rel)); err == nil {
			t.Errorf("%s was made", rel)
		}
	}
}

func hostileUnjailed(t *testing.T, u testenv.User, s hostileSite, bin, target string) hostileRun {
	t.Helper()
	argv := s.argv(bin, "n0", append(s.byPolicy(), s.byKernel(target)...)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "HOSTILE_BAIT=1")
	testenv.As(t, cmd, u)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), s.secret) {
		t.Error("the control did not find the secret")
	}
	return parseHostile(t, "n0", string(out))
}

func hostileJailed(t *testing.T, u testenv.User, s hostileSite, bin string, granted bool) hostileRun {
	t.Helper()
	p := basePolicy(s.path("work"))
	p.ReadableRoots = []string{filepath.Dir(bin)}
	attempts := s.byPolicy()
	if granted {
		p.WritableRoots = append(p.WritableRoots, s.path("out"))
		p.Network.Mode = protocol.NetFull
		p.EnvAllow = append(p.EnvAllow, "HOSTILE_BAIT")
		p.Mounts = []protocol.Mount{{Path: s.path("out/s"), Access: protocol.ReadWrite, Required: true}}
	} else {
		p.Protected = []string{s.path("work/.env"), s.path("work/.tool")}
		attempts = append(attempts, s.byKernel("1")...)
	}
	c := connect(t, u, p)
	c.send(2, protocol.ExecStart{Argv: s.argv(bin, "n1", attempts...), Cwd: s.path("work"), Token: []byte("t"),
		Env: map[string]string{"PATH": "/usr/bin:/bin", "HOSTILE_BAIT": "1"}})
	r := c.collect(2)
	if r.fail != nil {
		t.Fatalf("%s: %s", r.fail.Code, r.fail.Msg)
	}
	got := parseHostile(t, "n1", r.stdout)
	for _, k := range []string{"effect", "read9", "create9"} {
		if got[k] != "ok" {
			t.Errorf("%s, which is allowed: %q", k, got[k])
		}
	}
	if shows := strings.Contains(r.stdout, s.secret); shows != granted {
		t.Errorf("granted %v, but the secret shows: %v", granted, shows)
	}
	return got
}
