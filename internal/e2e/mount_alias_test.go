//go:build linux

package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// bind mounts one place of the site at another one, on the host.
func (s *site) bind(from, to string) {
	s.t.Helper()
	if err := unix.Mount(s.path(from), s.path(to), "", unix.MS_BIND, ""); err != nil {
		testenv.Skip(s.t, "mount", "cannot mount: "+err.Error())
	}
	s.t.Cleanup(func() { _ = unix.Unmount(s.path(to), unix.MNT_DETACH) })
}

// A bind mount of the host gives what is protected a second name: the mask stands
// there as well, and what is missing can be made under neither.
func TestMountSecondNameByTheHost(t *testing.T) {
	const attack = try + `for d in "$1" "$2"; do cd "$d" && echo ok
try read cat .env
try write 'echo x >>.env'
try over mv -f other .env
try make ': >.netrc'
try hook 'mv .git g; mkdir -p .git/hooks; : >.git/hooks/pre-commit'
done`
	const want = "ok\nread no\nwrite no\nover no\nmake no\nhook no\n"
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/.env", "secret\n")
		s.write("ws/other", "other\n")
		s.mkdir("ws/.git/hooks")
		s.mkdir("alias")
		s.bind("ws", "alias")
		before := s.tree()
		p := s.policy(s.protect("ws/.env", "ws/.netrc", "ws/.git/hooks"), func(p *protocol.Policy) {
			p.WritableRoots = append(p.WritableRoots, s.path("alias"))
		})
		c := connect(t, s.u, p)
		c.start(2, s.ws, "sh", "-c", attack, "sh", s.ws, s.path("alias"))
		r := c.collect(2)
		s.expect(r, want+want)
		if got := entry(t, r, "mounts"); !strings.Contains(got, "mask=3,absent=0") {
			t.Errorf("report: %q", got)
		}
		s.end(c)
		s.unchanged(before)
		p.Protected = nil
		r = s.jail(p, `cat "`+s.path("alias")+`/.env"; mv .git g && mkdir -p .git/hooks && echo planted`)
		s.expect(r, "secret\nplanted\n") // the control
	})
}

// A part of a protected directory is mounted somewhere else, and something mounted
// inside it has another name too.
func TestMountSecondNameOfAPart(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("keys/deep/key", "secret\n")
		s.write("volume/other", "secret\n")
		s.mkdir("keys/volume")
		s.mkdir("ws/part")
		s.mkdir("ws/volume")
		s.bind("volume", "keys/volume")
		s.bind("volume", "ws/volume")
		s.bind("keys/deep", "ws/part")
		const look = "cat part/key volume/other 2>/dev/null; ls part volume >/dev/null 2>&1 && echo listed; true"
		r := s.jail(s.policy(s.protect("keys")), look)
		s.expect(r, "listed\n") // both are empty
		if got := mountSkips(r); got != "" {
			t.Errorf("report: %q", got)
		}
		s.expect(s.jail(s.policy(), look), "secret\nsecret\nlisted\n")
	})
}

// A root that only a mount of the host takes below a protected path re-opens nothing.
func TestMountSecondNameIsNoRoot(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("keys/deep/key", "secret\n")
		s.mkdir("other")
		s.bind("keys", "other")
		for _, root := range []string{"other", "other/deep"} {
			p := s.policy(s.protect("keys"), func(p *protocol.Policy) { p.ReadableRoots = append(p.ReadableRoots, s.path(root)) })
			if got := s.refused(p); !strings.Contains(got, s.path(root)) || !strings.Contains(got, s.path("keys")) {
				t.Errorf("%s: %s", root, got)
			}
			p.Protected = nil
			s.expect(s.jail(p, "cat "+s.path("other/deep/key")), map[string]string{"other": "secret\n", "other/deep": "secret\n"}[root])
		}
	})
}

// What is read-only by one name and writable by another is said.
func TestMountReadOnlyUnderAnotherName(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/tools/t", "one\n")
		s.mkdir("alias")
		s.bind("ws", "alias")
		p := s.policy(func(p *protocol.Policy) {
			p.WritableRoots = append(p.WritableRoots, s.path("alias"))
			p.ReadableRoots = append(p.ReadableRoots, s.path("ws/tools"))
		})
		r := s.jail(p, "echo two >tools/t || echo refused")
		if got := mountSkips(r); !strings.Contains(got, s.path("ws/tools")) || !strings.Contains(got, s.path("alias/tools")) {
			t.Errorf("report: %q", got)
		}
		if r.stdout != "refused\n" {
			t.Errorf("got %q", r.stdout)
		}
		p.WritableRoots = []string{s.ws}
		if got := mountSkips(s.jail(p, "true")); got != "" {
			t.Errorf("without the other name: %q", got)
		}
	})
}

// share makes a directory of the site a mount whose events reach the jail, as those
// of a machine run by systemd do.
func (s *site) share(rel string) {
	s.t.Helper()
	s.bind(rel, rel)
	if err := unix.Mount("", s.path(rel), "", unix.MS_SHARED, ""); err != nil {
		s.t.Fatal(err)
	}
}

// The host mounts over what is pinned, or shows what is protected at another place,
// while the command runs: that is a lost mask.
func TestMountByTheHostDuringTheRun(t *testing.T) {
	for name, c := range map[string]struct{ from, to, lost, how string }{
		"over the pin":           {"elsewhere", "ws/.git", "ws/.git/hooks", "was covered by a mount that the host made"},
		"a protected directory":  {"keys", "ws/place", "keys", "was mounted by the host at"},
		"a part of it":           {"keys/deep", "ws/place", "keys", "was mounted by the host at"},
		"what holds a protected": {"top", "ws/place", "top/secret", "was mounted by the host at"},
	} {
		t.Run(name, func(t *testing.T) {
			eachSite(t, func(t *testing.T, s *site) {
				for _, dir := range []string{"elsewhere/hooks", "ws/.git/hooks", "keys/deep", "top/secret", "ws/place", "ws/plain"} {
					s.mkdir(dir)
				}
				s.share("ws")
				p := s.policy(s.protect("ws/.git/hooks", "keys", "top/secret"), func(p *protocol.Policy) {
					p.ReadableRoots = append(p.ReadableRoots, s.dir)
				})
				h := connect(t, s.u, p)
				h.start(2, s.ws, "sh", "-c", "echo ready; exec sleep 600")
				h.waitOut(2, "ready")
				s.bind(c.from, c.to)
				r := h.collect(2)
				if r.exit == nil || !r.exit.Cancelled {
					t.Fatalf("got %+v, %+v", r.exit, r.fail)
				}
				if got := mountSkips(r); !strings.Contains(got, s.path(c.lost)+`" `+c.how) || !strings.Contains(got, "; stopped") {
					t.Errorf("report: %q", got)
				}
				if err := unix.Unmount(s.path(c.to), unix.MNT_DETACH); err != nil {
					t.Fatal(err)
				}
				// The control: what shows nothing protected stops nothing, and arrives.
				h.start(3, s.ws, "sh", "-c", "echo ready; read x; ls plain")
				h.waitOut(3, "ready")
				s.write("elsewhere/seen", "x")
				s.bind("elsewhere", "ws/plain")
				h.send(3, protocol.ExecStdin{Data: []byte("\n"), EOF: true})
				r = h.collect(3)
				if r.exit == nil || r.exit.Cancelled || mountSkips(r) != "" || r.stdout != "ready\nhooks\nseen\n" && r.stdout != "hooks\nseen\n" {
					t.Errorf("control: %+v, %+v, %q", r.exit, r.fail, r.stdout)
				}
				s.end(h)
			})
		})
	}
}

// A host that mounts and unmounts something while a jail is built, as one that starts
// containers does: it is built anew, and the command runs once.
func TestMountByTheHostWhileItIsBuilt(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.mkdir("alias")
		s.mkdir("elsewhere")
		s.share("ws")
		h := connect(t, s.u, s.policy(func(p *protocol.Policy) { p.ReadableRoots = append(p.ReadableRoots, "/") }))
		for n := range uint64(40) {
			h.start(2+n, s.ws, "sh", "-c", "read x; echo $x >>log; echo $x")
			h.send(2+n, protocol.ExecStdin{Data: []byte("once\n"), EOF: true})
			time.Sleep(time.Duration(n) * 250 * time.Microsecond)
			if err := unix.Mount(s.path("elsewhere"), s.path("alias"), "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			if n%2 == 0 {
				time.Sleep(2 * time.Millisecond)
			} else if r := h.collect(2 + n); r.exit == nil || r.stdout != "once\n" {
				t.Errorf("%d: got %q, %+v, %+v", n, r.stdout, r.exit, r.fail)
			}
			if err := unix.Unmount(s.path("alias"), unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
			if n%2 == 1 {
				continue
			}
			if r := h.collect(2 + n); r.exit == nil || r.stdout != "once\n" {
				t.Errorf("%d: got %q, %+v, %+v", n, r.stdout, r.exit, r.fail)
			}
		}
		if n := strings.Count(s.read("ws/log"), "once\n"); n != 40 {
			t.Errorf("the commands ran %d times", n)
		}
		s.end(h)
	})
}

// A host that replaces what is masked and bound while a jail is built, as editors and
// git do: no command fails for it.
func TestMountReplacedWhileItIsBuilt(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/.env", "secret\n")
		s.write("shown/f", "shown\n")
		s.write("ws/plain", "plain\n")
		h := connect(t, s.u, s.policy(s.protect("ws/.env"), func(p *protocol.Policy) { p.ReadableRoots = append(p.ReadableRoots, s.path("shown/f")) }))
		ran := 0
		for n := range uint64(40) {
			h.start(2+n, s.ws, "cat", "plain")
			time.Sleep(time.Duration(n) * 250 * time.Microsecond)
			for rel, text := range map[string]string{"ws/.env": "secret\n", "shown/f": "shown\n"} {
				s.write(rel+"~", text)
				if err := os.Rename(s.path(rel+"~"), s.path(rel)); err != nil {
					t.Fatal(err)
				}
			}
			r := h.collect(2 + n)
			// One that runs when its mask is carried away is stopped, and is no matter here.
			if r.exit != nil && r.exit.Cancelled && strings.Contains(mountSkips(r), "; stopped") {
				continue
			}
			if ran++; r.exit == nil || r.stdout != "plain\n" {
				t.Errorf("%d: got %q, %+v, %+v", n, r.stdout, r.exit, r.fail)
			}
		}
		if ran < 10 {
			t.Errorf("%d ran", ran)
		}
		s.end(h)
	})
}

// A mount that arrives in a readable root is not writable through it.
func TestMountByTheHostInAReadableRoot(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.mkdir("shown/place")
		s.write("volume/f", "one\n")
		s.share("shown")
		p := s.policy(func(p *protocol.Policy) { p.ReadableRoots = append(p.ReadableRoots, s.path("shown")) })
		h := connect(t, s.u, p)
		h.start(2, s.ws, "sh", "-c", "echo ready; read x; cat $0/place/f; echo two >$0/place/f || echo refused", s.path("shown"))
		h.waitOut(2, "ready")
		s.bind("volume", "shown/place")
		h.send(2, protocol.ExecStdin{Data: []byte("\n"), EOF: true})
		r := h.collect(2)
		s.end(h)
		if !strings.HasSuffix(r.stdout, "one\nrefused\n") && !strings.Contains(mountSkips(r), s.path("shown/place")) {
			t.Errorf("got %q, %q, and nothing said: %q", r.stdout, r.stderr, r.exit.Enforcement)
		}
		if b, err := os.ReadFile(s.path("volume/f")); err != nil || string(b) != "one\n" && mountSkips(r) == "" {
			t.Errorf("the host's file: %q, %v", b, err)
		}
	})
}

// What the host has mounted read-only stays so, and is no writable root of the report's.
func TestMountReadOnlyOnTheHost(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ro/f", "x\n")
		s.write("rw/f", "x\n")
		s.mkdir("ro/w")
		s.mkdir("w")
		s.bind("w", "ro/w")
		s.bind("ro", "ro") // without w
		if err := unix.Mount("", s.path("ro"), "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			testenv.Skip(t, "mount", err.Error())
		}
		s.bind("w", "ro/w")
		for _, c := range []struct {
			change func(p *protocol.Policy)
			at     string
			entry  string
		}{
			{func(p *protocol.Policy) { p.WritableRoots = append(p.WritableRoots, s.path("rw")) }, "rw", "rw=2,"},
			{func(p *protocol.Policy) { p.WritableRoots = append(p.WritableRoots, s.path("ro")) }, "ro", "rw=1,"},
			{func(p *protocol.Policy) { p.WritableRoots = append(p.WritableRoots, s.path("ro/w")) }, "ro/w", "rw=2,"},
			{func(p *protocol.Policy) { p.Scratch = s.path("rw") }, "rw", "scratch=path"},
			{func(p *protocol.Policy) { p.Scratch = s.path("ro") }, "ro", "scratch=none"},
			{func(p *protocol.Policy) {
				p.Mounts = append(p.Mounts, protocol.Mount{Path: s.path("rw"), Access: protocol.ReadWrite})
			}, "rw", "bind_rw=1"},
			{func(p *protocol.Policy) {
				p.Mounts = append(p.Mounts, protocol.Mount{Path: s.path("ro"), Access: protocol.ReadWrite})
			}, "ro", "bind_rw=0"},
		} {
			r := s.jail(s.policy(c.change), try+"try write ': >"+s.path(c.at)+"/made'")
			want := "write yes\n"
			if c.at == "ro" {
				want = "write no\n"
			}
			s.expect(r, want)
			if got := entry(t, r, "mounts"); !strings.Contains(got, c.entry) {
				t.Errorf("%s, want %s: %s", c.at, c.entry, got)
			}
		}
	})
}
