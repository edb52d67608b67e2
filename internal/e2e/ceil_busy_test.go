//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// busyHost holds namespaces, as many as there may be, and runs a helper beside them.
// USR1 gives them up, USR2 takes them again; after each the marker is renamed into
// place. It runs as root of a user namespace of its own, whose ceiling is 2,000.
const busyHost = `
import ctypes, errno, os, resource, signal, subprocess, sys
marker, most = sys.argv[1], 2000
libc, held = ctypes.CDLL(None, use_errno=True), []
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
def say(what):
    with open(marker + ".new", "w") as f: f.write(what)
    os.rename(marker + ".new", marker)
def ceiling(n):
    with open("/proc/sys/user/max_uts_namespaces", "w") as f: f.write(str(n))
def take(*_):
    while libc.unshare(0x04000000) == 0: # CLONE_NEWUTS
        held.append(os.open("/proc/self/ns/uts", os.O_RDONLY))
    if ctypes.get_errno() != errno.ENOSPC: sys.exit("unshare: " + os.strerror(ctypes.get_errno()))
    ceiling(len(held)) # those of a jail that just ended may go only now
    say("%d held" % len(held))
def free(*_):
    ceiling(most)
    while held: os.close(held.pop())
    say("free")
ceiling(most)
if sys.argv[2] == "busy": take()
else: free()
signal.signal(signal.SIGUSR1, free)
signal.signal(signal.SIGUSR2, take)
sys.exit(subprocess.Popen(sys.argv[3:], pass_fds=[3]).wait())
`

type busy struct {
	m      mode
	c      *sup
	marker testenv.Marker
}

func startBusy(m mode, state string, args ...string) *busy {
	m.t.Helper()
	b := &busy{m: m, marker: testenv.NewMarker(m.u.Home, "state")}
	_ = os.Remove(b.marker.Path())
	argv := append([]string{"--user", "--map-root-user", "--mount", "--", testenv.Tool(m.t, "python3"), "-ISc", busyHost,
		b.marker.Path(), state, testenv.Binary(m.t), "--allow-unenforced", "--standby=off"}, args...)
	b.c = m.spawnCmd(exec.Command(testenv.Tool(m.t, "unshare"), argv...), m.policy())
	b.c.greet()
	b.wait()
	return b
}

func (b *busy) wait() {
	b.m.t.Helper()
	b.m.t.Logf("namespaces: %s", b.marker.Wait(b.m.t))
	must(b.m.t, os.Remove(b.marker.Path()))
}

func (b *busy) signal(sig syscall.Signal) {
	b.m.t.Helper()
	must(b.m.t, b.c.cmd.Process.Signal(sig))
	b.wait()
}

// try runs a command that leaves a file, and says whether that is there.
func (b *busy) try(id uint64) (result, bool) {
	b.m.t.Helper()
	file := filepath.Join(b.m.dir, "ran-"+uintText(id))
	b.c.start(id, b.m.dir, "sh", "-c", "echo >"+file)
	r := b.c.collect(id)
	_, err := os.Stat(file)
	return r, err == nil
}

func (b *busy) fails(id uint64) {
	b.m.t.Helper()
	if r, ran := b.try(id); ran || r.fail == nil || r.fail.Code != protocol.CodeSpawnFailed || !strings.Contains(r.fail.Msg, "max_*_namespaces") {
		b.m.t.Errorf("while the namespaces are used up: ran %v, %+v, %+v", ran, r.exit, r.fail)
	}
}

func (b *busy) works(id uint64) {
	b.m.t.Helper()
	if r, ran := b.try(id); !ran || r.exit == nil || r.exit.Degraded || !has(r.exit.Enforcement, "bwrap") {
		b.m.t.Errorf("with namespaces to be had: ran %v, %+v, %+v", ran, r.exit, r.fail)
	}
}

// A host on which 2,000 namespaces are in use is busy and not without bubblewrap:
// nothing is degraded, no execution falls back, and each works as soon as it can.
func TestCeilBusyHost(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		ownNamespaces(t, u)
		for _, args := range [][]string{nil, {"--require-enforced"}} {
			b := startBusy(jailed(t, u), "busy", args...)
			if has(b.c.hello.Features, "degraded") || has(b.c.hello.Features, "bwrap") {
				t.Errorf("hello of a host that is not known: %q", b.c.hello.Features)
			}
			b.fails(2)
			b.signal(syscall.SIGUSR1)
			b.works(3)
			b.signal(syscall.SIGUSR2)
			b.fails(4)
			b.c.down()
		}
		b := startBusy(jailed(t, u), "free")
		if has(b.c.hello.Features, "degraded") || !has(b.c.hello.Features, "bwrap") {
			t.Errorf("hello: %q", b.c.hello.Features)
		}
		b.works(2)
		b.signal(syscall.SIGUSR2)
		b.fails(3)
		b.signal(syscall.SIGUSR1)
		b.works(4)
		b.c.down()
	})
}

// A trial that a loaded machine spoils establishes nothing, whatever spoils it.
func TestCeilSpoiledTrial(t *testing.T) {
	u := testenv.Me()
	for name, spoil := range map[string]string{
		"killed":       "kill -KILL $$",
		"no processes": "echo 'bwrap: Creating new namespace failed: Resource temporarily unavailable' >&2; exit 1",
		"no memory":    "echo 'bwrap: Creating new namespace failed: Cannot allocate memory' >&2; exit 1",
		"no inodes":    "echo 'bwrap: Creating new namespace failed: No space left on device' >&2; exit 1",
		"silent":       "exit 1",
		"too slow":     "exec sleep 600", // the probe's bound is 30 seconds
	} {
		t.Run(name, func(t *testing.T) {
			u.Home = testenv.TempDir(t, u)
			m := jailed(t, u)
			fake := filepath.Join(u.Home, "bwrap")
			// Of an execution it is the real one.
			writeMode(t, fake, "#!/bin/sh\ncase $1 in --help|--version|--args) exec /usr/bin/bwrap \"$@\";; esac\n"+spoil+"\n", 0o755)
			c := m.connect(m.policy(), "--bwrap", fake, "--allow-unenforced")
			if has(c.hello.Features, "bwrap") {
				t.Errorf("hello claims what failed: %q", c.hello.Features)
			}
			if x := c.sh(2, m.dir, "true").exit; x.Degraded || !has(x.Enforcement, "bwrap") {
				t.Errorf("%+v", x)
			}
			c.down()
		})
	}
}
