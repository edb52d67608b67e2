//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// adopt makes this process a subreaper that reaps nothing by itself: what a helper
// leaves comes here, as it comes to a container's pid 1, and shows.
func adopt(t *testing.T) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
		reapZombies()
	})
}

// orphans lists what descends from this process: alive or a zombie. Children that
// os/exec knows have been waited for when it is called.
func orphans() (alive, zombies []testenv.Process) {
	for _, p := range testenv.Descendants(os.Getpid()) {
		if p.State == "Z" || p.State == "X" {
			zombies = append(zombies, p)
		} else {
			alive = append(alive, p)
		}
	}
	return alive, zombies
}

// allGone demands an empty workspace and no orphan, no zombie either.
func allGone(t *testing.T, workspace string) {
	t.Helper()
	nothingLeft(t, workspace)
	if alive, zombies := orphans(); len(alive)+len(zombies) > 0 {
		t.Fatalf("left: %+v %+v", alive, zombies)
	}
}

func reapZombies() {
	_, zombies := orphans()
	for _, z := range zombies {
		var ws unix.WaitStatus
		_, _ = unix.Wait4(z.PID, &ws, unix.WNOHANG, nil)
	}
}

// nobodyLives waits until all orphans are dead: a kill is not instantaneous, but a
// jail that runs on, or a bubblewrap that waits for its dead parent, stays.
func nobodyLives(t *testing.T, after string) {
	t.Helper()
	var alive []testenv.Process
	for range 2000 {
		if alive, _ = orphans(); len(alive) == 0 {
			reapZombies()
			return
		}
		testenv.Pause()
	}
	for _, p := range alive {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		w, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", p.PID))
		t.Errorf("%s: lives on: %+v %q in %s", after, p, b, w)
		_ = unix.Kill(p.PID, unix.SIGKILL)
	}
	t.FailNow()
}

// killTargets are the commands that a helper dies under.
var killTargets = [][]string{
	{"true"},
	{"sh", "-c", "setsid sleep 600 & sleep 600"},
	{"sh", "-c", "trap '' TERM HUP; (setsid sh -c 'while :; do sleep 0.01; done' &); while :; do sleep 0.01; done"},
	{"cat"},
}

func (m mode) masked() protocol.Policy {
	p := m.policy()
	if !m.degraded() {
		p.Protected = []string{filepath.Join(m.dir, ".vscode")} // a placeholder
	}
	return p
}

// pristine runs one more helper on the same workspace and wants it clean afterwards.
func (m mode) pristine() {
	m.t.Helper()
	c := m.connect(m.masked())
	c.sh(2, m.dir, "true")
	c.down()
	if left, err := os.ReadDir(m.dir); err != nil || len(left) > 0 {
		m.t.Errorf("left in the workspace: %v %v", left, err)
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(b), m.dir) {
		m.t.Errorf("a mount is left: %v", err)
	}
}

// SIGKILL to the helper at any moment leaves no process, no jail and no bubblewrap
// that hangs.
func TestSIGKILLAtAnyMoment(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		adopt(t)
		for i := range scaled(250, 25) {
			c := m.connect(m.masked())
			c.start(2, m.dir, killTargets[i%len(killTargets)]...)
			wait := time.Duration(rand.IntN(60000)) * time.Microsecond
			time.Sleep(wait)
			_ = c.cmd.Process.Kill()
			_ = c.cmd.Wait()
			nobodyLives(t, fmt.Sprintf("SIGKILL after %v", wait))
		}
		m.pristine()
	})
}

// SIGTERM at any moment is an orderly end; nothing at all remains, no zombie either.
func TestSIGTERMAtAnyMoment(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		adopt(t)
		for i := range scaled(125, 12) {
			c := m.connect(m.masked())
			c.start(2, m.dir, killTargets[i%len(killTargets)]...)
			time.Sleep(time.Duration(rand.IntN(60000)) * time.Microsecond)
			_ = c.cmd.Process.Signal(syscall.SIGTERM)
			if code := c.wait(); code != 0 {
				t.Errorf("exit %d: %s", code, c.stderr)
			}
			allGone(t, m.dir)
		}
	})
}

// A broker that dies takes its helper and the command with it.
func TestBrokerDiesAtAnyMoment(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		adopt(t)
		for i := range scaled(125, 8) {
			c := m.connect(m.masked())
			argv := killTargets[i%len(killTargets)]
			if i%2 == 1 {
				argv = []string{"sh", "-c", "setsid cat /dev/zero & cat /dev/zero"} // it writes to nobody
			}
			c.start(2, m.dir, argv...)
			time.Sleep(time.Duration(rand.IntN(60000)) * time.Microsecond)
			c.hangUp()
			_ = c.cmd.Wait()
			allGone(t, m.dir)
		}
	})
}

// attack tries what would let a payload outlive its namespace's init: it wants to
// own pid 1 and switch its parent-death signal off. It prints what it could do.
const attack = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
target = int(sys.argv[1])
def tell(name, ok): print(name, "DONE" if ok else "denied", flush=True)
r = libc.ptrace(0x4206, target, 0, 0)                     # PTRACE_SEIZE
tell("ptrace", r == 0)
if r == 0: libc.ptrace(17, target, 0, 0)
pfd = libc.syscall(434, target, 0)                        # pidfd_open
got = [libc.syscall(438, pfd, n, 0) for n in range(16)] if pfd >= 0 else []
tell("getfd", any(g >= 0 for g in got))                   # pidfd_getfd
try:
    f = open("/proc/%d/mem" % target, "r+b", 0); ok = True
except OSError: ok = False
tell("mem", ok)
class iov(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
try: first = int(open("/proc/%d/maps" % target).readline().split("-")[0], 16)
except (OSError, ValueError, IndexError): first = 0x400000
buf = ctypes.create_string_buffer(8)
a, b = iov(ctypes.addressof(buf), 8), iov(first, 8)
tell("vmread", libc.process_vm_readv(target, ctypes.byref(a), 1, ctypes.byref(b), 1, 0) > 0)
try: os.kill(target, 9)
except OSError: pass
print("ready", flush=True)
`

// A payload that attacks bubblewrap's init gets nowhere, with Landlock and without,
// and dies with the helper.
func TestAttackOnInit(t *testing.T) {
	py := testenv.Tool(t, "python3")
	bareAttack(t, py)
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, landlock := range []bool{true, false} {
			t.Run(fmt.Sprintf("landlock=%v", landlock), func(t *testing.T) {
				m := jailed(t, u)
				adopt(t)
				cmd := m.command()
				if !landlock {
					cmd = m.as("nolandlock")
				}
				c := m.connectCmd(cmd, m.policy())
				if has(c.hello.Features, "landlock") != landlock {
					if landlock {
						testenv.Skip(t, "landlock", "this kernel has none")
					}
					t.Fatalf("Landlock is still there: %q", c.hello.Features)
				}
				c.start(2, m.dir, "sh", "-c", py+` -c "$0" 1; setsid sleep 600 & sleep 600`, attack)
				out := c.waitOut(2, "ready")
				for _, way := range []string{"ptrace", "getfd", "mem", "vmread"} {
					if !strings.Contains(out, way+" denied") {
						t.Errorf("%s: %q", way, out)
					}
				}
				_ = c.cmd.Process.Kill()
				_ = c.cmd.Wait()
				nobodyLives(t, "SIGKILL under an attack")
			})
		}
	})
}

// bareAttack is the control: on a process that nothing protects the attack works.
func bareAttack(t *testing.T, py string) {
	t.Helper()
	victim := exec.Command("sleep", "600")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
	out, err := exec.Command(py, "-c", attack, fmt.Sprint(victim.Process.Pid)).CombinedOutput()
	if err != nil || strings.Count(string(out), "DONE") != 4 {
		t.Fatalf("the attack fails without a jail: %v %s", err, out)
	}
}
