package bwrap_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

func TestWorkspaceIsWritableAndNothingElse(t *testing.T) {
	each(t, func(j *jail) {
		j.write("other/secret", "no")
		j.expect(`cd `+j.path("ws")+`
echo hi > f && cat f
(: > /x) 2>/dev/null || echo root sealed
(: > /usr/x) 2>/dev/null || echo usr ro
(: > /proc/sys/kernel/core_pattern) 2>/dev/null || echo proc ro
(: > /dev/x) 2>/dev/null || echo dev ro
(: > /var/tmp/x) 2>/dev/null || echo parents sealed
[ -e `+j.path("other")+` ] || echo not visible
stat -c '%a %n' / /var /var/tmp /tmp /dev/shm
: > /tmp/x && : > /dev/shm/x && : > /dev/null && echo scratch
`, `hi
root sealed
usr ro
proc ro
dev ro
parents sealed
not visible
755 /
755 /var
755 /var/tmp
1777 /tmp
1777 /dev/shm
scratch
`)
		if b, err := os.ReadFile(j.path("ws/f")); err != nil || string(b) != "hi\n" {
			t.Errorf("the host does not see the write: %q, %v", b, err)
		}
	})
}

func TestMasksOfEveryKind(t *testing.T) {
	each(t, func(j *jail) {
		j.write("ws/file", "secret")
		j.write("ws/dir/f", "secret")
		j.write("ws/.git/hooks/h", "secret")
		j.write("ws/.git/config", "[core]")
		j.write("ws/real/f", "secret")
		j.link("real/f", "ws/link")
		for _, mk := range []struct {
			rel  string
			mode uint32
		}{{"ws/fifo", syscall.S_IFIFO}, {"ws/sock", syscall.S_IFSOCK}} {
			if err := syscall.Mknod(j.path(mk.rel), mk.mode|0o666, 0); err != nil {
				t.Fatal(err)
			}
			j.own(j.path(mk.rel))
		}
		for _, rel := range []string{"file", "dir", "dir/f", ".git/hooks", "link", "fifo", "sock", "gone/deeper", ".git/commondir"} {
			j.p.Protected = append(j.p.Protected, j.path("ws/"+rel))
		}
		j.expect(`cd `+j.path("ws")+`
for f in file real/f link fifo sock; do
	[ -f $f ] && [ ! -s $f ] && echo $f regular empty
	(cat $f) 2>&1 | sed 's/.*: //'
	(echo x > $f) 2>/dev/null || echo $f unwritable
done
stat -c '%a %n' dir .git/hooks gone
ls -A .git/hooks
(: > dir/f) 2>/dev/null || echo no dir/f
(: > .git/hooks/h) 2>/dev/null || echo no hook
(mkdir -p gone/deeper) 2>/dev/null || echo not creatable
(mv .git g) 2>/dev/null || echo pinned
(rm -f file) 2>/dev/null || echo not removable
cat .git/commondir; echo
cat .git/config; echo
echo new > .git/new && cat .git/new
`, `file regular empty
Permission denied
file unwritable
real/f regular empty
Permission denied
real/f unwritable
link regular empty
Permission denied
link unwritable
fifo regular empty
Permission denied
fifo unwritable
sock regular empty
Permission denied
sock unwritable
444 `+`dir
555 .git/hooks
555 gone
no dir/f
no hook
not creatable
pinned
not removable
./
[core]
new
`)
		for rel, want := range map[string]string{"ws/file": "secret", "ws/real/f": "secret", "ws/dir/f": "secret"} {
			if b, err := os.ReadFile(j.path(rel)); err != nil || string(b) != want {
				t.Errorf("%s on the host: %q, %v", rel, b, err)
			}
		}
	})
}

func TestNarrowerRootsHold(t *testing.T) {
	each(t, func(j *jail) {
		j.write("ws/a/ro/f", "read")
		j.write("ws/a/ro/rw/f", "write")
		j.write("ws/b/m", "mount")
		j.p.ReadableRoots = []string{j.path("ws/a/ro")}
		j.p.WritableRoots = append(j.p.WritableRoots, j.path("ws/a/ro/rw"))
		j.p.Mounts = []protocol.Mount{{Path: j.path("ws/b/m"), Access: protocol.ReadOnly, Required: true}}
		j.expect(`cd `+j.path("ws")+`
cat a/ro/f; echo
(: > a/ro/f) 2>/dev/null || echo ro
: > a/ro/rw/f && echo rw
(: > b/m) 2>/dev/null || echo mount ro
(mv a x) 2>/dev/null || echo pinned a
(mv b x) 2>/dev/null || echo pinned b
`, "read\nro\nrw\nmount ro\npinned a\npinned b\n")
	})
}

func TestScratchHidesAndKeeps(t *testing.T) {
	each(t, func(j *jail) {
		dir, err := os.MkdirTemp("/tmp", "bwrap-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		for _, sub := range []string{dir, dir + "/root", dir + "/gone", dir + "/secret"} {
			os.Mkdir(sub, 0o755)
			j.own(sub)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/mounted", []byte("m"), 0o644); err != nil {
			t.Fatal(err)
		}
		j.p.WritableRoots = append(j.p.WritableRoots, dir+"/root")
		j.p.Protected = []string{dir + "/secret", "/tmp/never/there"}
		j.p.Mounts = []protocol.Mount{{Path: dir + "/mounted", Access: protocol.ReadOnly, Required: true}}
		j.expect(`cd `+dir+`
ls
stat -c '%a %n' . secret /tmp/never
cat mounted; echo
: > root/f && echo root
(mkdir -p /tmp/never/there) 2>/dev/null || echo not there
df --output=size -k /tmp | tail -1 | tr -d ' '
`, "mounted\nroot\nsecret\n755 .\n444 secret\n555 /tmp/never\nm\nroot\nnot there\n16384\n")
	})
}

func TestLinksAreReproduced(t *testing.T) {
	each(t, func(j *jail) {
		j.mkdir("real/ws")
		j.link("real", "alias")
		j.p.WritableRoots = []string{j.path("alias/ws")}
		j.expect(`: > `+j.path("alias/ws")+`/f; readlink `+j.path("alias")+`; ls `+j.path("real/ws")+`
readlink /bin`, "real\nf\nusr/bin\n")
	})
}

func TestDevicesAndSockets(t *testing.T) {
	each(t, func(j *jail) {
		j.p.Mounts = []protocol.Mount{{Path: "/dev/kmsg", Access: protocol.ReadOnly}, {Path: "/dev/full", Access: protocol.ReadWrite, Required: true}}
		j.p.Protected = []string{"/dev/random", "/dev/shm/x"}
		j.expect(`(echo x > /dev/full) 2>/dev/null || echo full
(cat /dev/random) 2>&1 | sed 's/.*: //'
(mkdir /dev/shm/x/y) 2>/dev/null || echo kept away
[ -c /dev/kmsg ] && echo kmsg
(: > /dev/x) 2>/dev/null || echo dev ro`, "full\nPermission denied\nkept away\nkmsg\ndev ro\n")
	})
}

func TestHostView(t *testing.T) {
	for _, writable := range []bool{false, true} {
		each(t, func(j *jail) {
			j.write("ws/secret", "s")
			j.p.Protected = []string{j.path("ws/secret")}
			if writable {
				j.p.WritableRoots = []string{"/"}
			} else {
				j.p.ReadableRoots = []string{"/"}
			}
			j.expect(`cd `+j.path("ws")+` && : > new && echo ws
(cat secret) 2>&1 | sed 's/.*: //'
(: > /usr/bin/x) 2>/dev/null || echo usr ro
ls `+j.path("")+`
(mv `+j.path("ws")+` `+j.path("x")+`) 2>/dev/null || echo pinned
(cat /etc/shadow >/dev/null) 2>/dev/null || echo no shadow
head -c 4 /etc/passwd; echo
`, "ws\nPermission denied\nusr ro\nws\npinned\nno shadow\nroot\n")
			if writable && !strings.Contains(j.listing(), "system-ro") {
				t.Error("no system directory stays read-only")
			}
		})
	}
}

func TestInitIsHiddenWithoutLandlock(t *testing.T) {
	each(t, func(j *jail) {
		j.facts = func(f *host.Facts) { f.LandlockABI = 0 }
		j.expect(`stat -c '%a %n' /proc/1; (ls /proc/1/fd) 2>/dev/null || echo hidden; [ -e /proc/self/status ] && echo self`, "444 /proc/1\nhidden\nself\n")
	})
}

func TestServiceSocketMaskKeepsAnExplicitMount(t *testing.T) {
	each(t, func(j *jail) {
		j.mkdir("agent")
		j.write("agent/s", "socket")
		j.write("agent/broker", "b")
		j.p.ReadableRoots = []string{"/"}
		j.facts = func(f *host.Facts) { f.SSHAuth = j.path("agent/s") }
		j.p.Mounts = []protocol.Mount{{Path: j.path("agent/broker"), Access: protocol.ReadOnly, Required: true}}
		j.expect(`ls -A `+j.path("agent")+`; cat `+j.path("agent/broker")+`; echo; (cat `+j.path("agent/s")+`) 2>&1 | sed 's/.*: //'`,
			"broker\ns\nb\nPermission denied\n")
	})
}

func TestWorktreeGitFileIsKeptAFile(t *testing.T) {
	each(t, func(j *jail) {
		j.write("ws/.git", "gitdir: /nowhere")
		j.p.Protected = []string{j.path("ws/.git/hooks")}
		j.expect(`cd `+j.path("ws")+`; (rm -f .git) 2>/dev/null || echo kept; (mv .git x) 2>/dev/null || echo kept; cat .git; echo`,
			"kept\nkept\ngitdir: /nowhere\n")
	})
}

// The places of the table are the host's, so this plan is made by hand.
func TestMaskWithAMountInside(t *testing.T) {
	each(t, func(j *jail) {
		j.write("run/private", "p")
		j.write("run/broker", "b")
		base := plan.Plan{Ops: []plan.Op{
			{Path: "/", Class: plan.Readable, Node: host.Node{Kind: host.Dir}},
			{Path: "/proc", Class: plan.Proc},
			{Path: "/dev", Class: plan.Dev, Size: 1 << 20},
			{Path: j.path("run"), Class: plan.MaskDir, Perms: 0o111},
			{Path: j.path("run/broker"), Class: plan.MountRO},
		}}
		c, err := bwrap.Render(base, bwrap.Options{FirstFD: 4, Flags: j.flags, Exec: []string{"/bin/sh", "-c",
			"cd " + j.path("run") + "; ls 2>/dev/null || echo unlisted; cat broker; echo; (: > x) 2>/dev/null || echo ro"}})
		if err != nil {
			t.Fatal(err)
		}
		if out, _ := j.start(c); out != "unlisted\nb\nro\n" {
			t.Errorf("got %q", out)
		}
	})
}
