//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// Roots and the cwd below a linked directory: both spellings lead to the host.
func TestMountBelowALinkedDirectory(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.mkdir("real/ws")
		s.write("real/ro/f", "read\n")
		alias := s.link("real", "alias")
		p := s.policy(func(p *protocol.Policy) {
			p.WritableRoots = []string{alias + "/ws"}
			p.ReadableRoots = []string{alias + "/ro"}
		})
		c := connect(t, s.u, p)
		for i, cwd := range []string{alias + "/ws", s.path("real/ws")} {
			r := c.try(uint64(i+2), cwd, try+fmt.Sprintf(`pwd -P; try a ': >%s/ws/a%d'; try b ': >%s/ws/b%d'; cat %s/ro/f %s/ro/f; try ro ': >%s/ro/x'`,
				alias, i, s.path("real"), i, alias, s.path("real"), alias))
			s.expect(r, s.path("real/ws")+"\na yes\nb yes\nread\nread\nro no\n")
			if !s.exists(fmt.Sprintf("real/ws/a%d", i)) || !s.exists(fmt.Sprintf("real/ws/b%d", i)) {
				t.Error("not written to the host")
			}
		}
		// The control: a neighbour below the same link is not in the view.
		s.mkdir("real/other")
		c.start(9, alias+"/other", "true")
		if r := c.collect(9); r.fail == nil || r.fail.Code != protocol.CodeRefused || !strings.Contains(r.fail.Msg, "real/other") {
			t.Errorf("got %+v, %+v", r.exit, r.fail)
		}
		s.end(c)
	})
}

func TestMountWritableRootOfTheHost(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/.env", "secret\n")
		s.write("elsewhere/f", "old\n")
		s.link("elsewhere", "lnk")
		p := s.policy(s.protect("ws/.env", "elsewhere/gone/x", "lnk/f"), func(p *protocol.Policy) { p.WritableRoots = []string{"/"} })
		before := s.tree()
		r := s.jail(p, try+fmt.Sprintf(`cd %s
try workspace ': >ws/new && rm ws/new'
try elsewhere ': >elsewhere/new && rm elsewhere/new'
try env cat ws/.env
try "env move" mv ws e
try "linked mask" cat elsewhere/f
try missing mkdir -p elsewhere/gone/x
try usr ': >/usr/sandboxd-test-x'
try etc ': >/etc/sandboxd-test-x'
try proc 'echo x >/proc/sys/kernel/domainname'
try dev ': >/dev/sandboxd-test-x'
try null ': >/dev/null'
try tmp ': >/tmp/x'
`, s.dir))
		s.expect(r, `workspace yes
elsewhere yes
env no
env move no
linked mask no
missing no
usr no
etc no
proc no
dev no
null yes
tmp yes
`)
		s.unchanged(before)
		if m := entry(t, r, "mounts"); !strings.Contains(m, "rw=1,mask=3,") || !strings.Contains(m, "base=host-view") {
			t.Errorf("report: %q", m)
		}
		if got := mountSkips(r); !strings.Contains(got, s.path("lnk")) {
			t.Errorf("the replaceable link is not reported: %q", got)
		}
		if r := s.jail(s.policy(), try+"try elsewhere ': >"+s.path("elsewhere/new")+"'"); r.stdout != "elsewhere no\n" {
			t.Errorf("the control: %q", r.stdout)
		}
	})
}

func TestMountReadableRootOfTheHost(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("elsewhere/f", "host\n")
		p := s.policy(func(p *protocol.Policy) { p.ReadableRoots = []string{"/"} })
		pid := os.Getpid()
		r := s.jail(p, try+fmt.Sprintf(`cat %s
try elsewhere ': >%s'
try ws ': >new'
try null 'echo x >/dev/null'
try urandom 'head -c 1 /dev/urandom'
try shm ': >/dev/shm/x'
ls /proc | grep -c '^[0-9]*$' | awk '{print ($1 < 8)}'
try disk 'ls /dev/vda /dev/sda /dev/mem /dev/loop0 | grep .'
test -d /proc/%d && tr '\0' ' ' </proc/%d/cmdline
try pid1 'grep -q bwrap /proc/1/comm'
`, s.path("elsewhere/f"), s.path("elsewhere/x"), pid, pid))
		s.expect(r, `host
elsewhere no
ws yes
null yes
urandom yes
shm yes
1
disk no
pid1 yes
`)
		if !s.exists("ws/new") {
			t.Error("the workspace is not the host's")
		}
		if r := s.jail(s.policy(), try+"try elsewhere cat "+s.path("elsewhere/f")); r.stdout != "elsewhere no\n" {
			t.Errorf("the control: %q", r.stdout)
		}
	})
}

// A workspace under /tmp survives the private scratch, its neighbours do not show.
func TestMountWorkspaceUnderTmp(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		dir := testenv.TempDir(t, u)
		if !strings.HasPrefix(dir, "/tmp/") {
			t.Fatalf("%s is not below /tmp", dir)
		}
		s := &site{t: t, u: u, dir: dir, ws: filepath.Join(dir, "ws")}
		s.mkdir("ws")
		s.write("ws/.env", "secret\n")
		s.write("neighbour", "n\n")
		name := filepath.Base(dir)
		script := try + fmt.Sprintf(`try ws ': >%s/new'
try env cat .env
try neighbour cat ../neighbour
try "make neighbour" 'echo x >../neighbour'
try scratch ': >/tmp/%s.x'
try missing ': >.netrc'
ls /tmp | sort
`, s.ws, name)
		r := s.jail(s.policy(s.protect("ws/.env", "ws/.netrc")), script)
		got := strings.Replace(r.stdout, "make neighbour no\n", "make neighbour -\n", 1)
		want := "ws yes\nenv no\nneighbour no\nmake neighbour -\nscratch yes\nmissing no\n" + name + "\n" + name + ".x\n"
		if strings.Replace(got, "make neighbour yes\n", "make neighbour -\n", 1) != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
		if s.read("neighbour") != "n\n" || !s.exists("ws/new") || s.exists("ws/.netrc") {
			t.Errorf("on the host: %s", s.tree())
		}
		if _, err := os.Lstat("/tmp/" + name + ".x"); err == nil {
			t.Error("the scratch is the host's /tmp")
		}
		// The control: with the neighbour as a root it shows.
		r = s.jail(s.policy(func(p *protocol.Policy) { p.ReadableRoots = []string{s.path("neighbour")} }), script)
		if !strings.Contains(r.stdout, "neighbour yes\n") || !strings.Contains(r.stdout, "env yes\n") {
			t.Errorf("the control: %q", r.stdout)
		}
	})
}

func TestMountScratchAsAHostPath(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		scratch := s.mkdir("scratch")
		s.write("scratch/keep", "k\n")
		s.write("scratch/secret", "s\n")
		r := s.jail(s.policy(s.protect("scratch/secret"), func(p *protocol.Policy) { p.Scratch = scratch }), try+`echo $SANDBOXD_SCRATCH_DIR $TMPDIR
f=$(mktemp); test -f $SANDBOXD_SCRATCH_DIR/$(basename $f) && echo in it
echo left >$SANDBOXD_SCRATCH_DIR/left
cat $SANDBOXD_SCRATCH_DIR/keep
try secret cat $SANDBOXD_SCRATCH_DIR/secret
try tmp ': >/tmp/x'
`)
		s.expect(r, scratch+" "+scratch+"\nin it\nk\nsecret no\ntmp no\n")
		if s.read("scratch/left") != "left\n" || s.read("scratch/keep") != "k\n" {
			t.Error("the scratch is not the host's directory")
		}
		if m := entry(t, r, "mounts"); !strings.Contains(m, "scratch=path") {
			t.Errorf("report: %q", m)
		}
		if r := s.jail(s.policy(), try+"try scratch ': >"+scratch+"/x'; echo $SANDBOXD_SCRATCH_DIR"); r.stdout != "scratch no\n/tmp\n" {
			t.Errorf("the control: %q", r.stdout)
		}
	})
}

func TestMountNestedRoots(t *testing.T) {
	needPerl(t)
	eachSite(t, func(t *testing.T, s *site) {
		s.mkdir("ws/a/b/c/d")
		p := s.policy(func(p *protocol.Policy) {
			p.ReadableRoots = []string{s.path("ws/a"), s.path("ws/a/b/c")}
			p.WritableRoots = append(p.WritableRoots, s.path("ws/a/b"), s.path("ws/a/b/c/d"))
		})
		// rename(2) itself: mv would copy.
		const script = try + `for d in . a a/b a/b/c a/b/c/d; do try "write $d" ": >$d/f"; done
for d in a/b/c/d a/b/c a/b a; do try "move $d" "/usr/bin/perl -e 'exit !rename q($d), q(m)'"; done
`
		s.expect(s.jail(p, script), `write . yes
write a no
write a/b yes
write a/b/c no
write a/b/c/d yes
move a/b/c/d no
move a/b/c no
move a/b no
move a no
`)
		for rel, want := range map[string]bool{"f": true, "a/f": false, "a/b/f": true, "a/b/c/f": false, "a/b/c/d/f": true} {
			if s.exists("ws/"+rel) != want {
				t.Errorf("%s on the host: %t", rel, !want)
			}
		}
		r := s.jail(s.policy(), script)
		if strings.Count(r.stdout, "yes") != 6 || !strings.Contains(r.stdout, "write a/b/c yes\n") || !strings.Contains(r.stdout, "move a/b/c/d yes\n") {
			t.Errorf("the control: %q", r.stdout) // then m is there, and not empty
		}
	})
}

// A mount that may be missing is left out, said, and is no failed layer.
func TestMountOptional(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		p := s.policy(func(p *protocol.Policy) {
			p.Mounts = []protocol.Mount{{Path: s.path("gone/sock"), Access: protocol.ReadOnly}}
		})
		r := s.jail(p, "test -e ../gone || echo absent", "--require-enforced")
		s.expect(r, "absent\n")
		if e := entry(t, r, "skip:optional-mount"); !strings.Contains(e, s.path("gone/sock")) || mountSkips(r) != "" {
			t.Errorf("report: %q", r.exit.Enforcement)
		}
		s.write("gone/sock", "there\n")
		r = s.jail(p, "cat ../gone/sock", "--require-enforced")
		s.expect(r, "there\n")
		if has(r.exit.Enforcement, "skip:optional-mount") {
			t.Errorf("report: %q", r.exit.Enforcement)
		}
		p.Mounts[0].Path, p.Mounts[0].Required = s.path("gone/other"), true
		if msg := s.refused(p); !strings.Contains(msg, "mounts[0]") || !strings.Contains(msg, "required") {
			t.Errorf("got %q", msg)
		}
	})
}
