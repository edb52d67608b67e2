//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// tracer has a child in another session trace its parent, the command, and never
// wait for it: the parent's end is then kept from whoever should reap it.
const tracer = `
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.prctl(0x59616d61, ctypes.c_ulong(2**64 - 1), 0, 0, 0)  # PR_SET_PTRACER, PR_SET_PTRACER_ANY
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    ok = libc.ptrace(0x4206, os.getppid(), 0, 0) == 0       # PTRACE_SEIZE
    os.write(w, b"y" if ok else b"n")
    time.sleep(600)
print("traced" if os.read(r, 1) == b"y" else "free", flush=True)
os._exit(3)
`

// A command that is traced by its own child ends when it ends, with its own status.
func TestTracedCommand(t *testing.T) {
	py := testenv.Tool(t, "python3")
	everyMode(t, func(t *testing.T, m mode) {
		c := m.connect(m.policy())
		c.start(2, m.dir, py, "-c", tracer)
		r := c.collect(2)
		if !strings.Contains(r.stdout, "traced") {
			t.Fatalf("the attack does not work here: %q %q %+v", r.stdout, r.stderr, r.fail)
		}
		if r.exit == nil || r.exit.Code != 3 || r.exit.Signal != 0 || r.exit.Cancelled || r.exit.WallMS > 4000 {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		c.down()
	})
}

// inState counts the processes below the helper that are in one state.
func inState(c *sup, state string) (n int) {
	for _, p := range testenv.Descendants(c.cmd.Process.Pid) {
		if p.State == state {
			n++
		}
	}
	return n
}

// Orphans that end during a run are reaped during the run: a long one would else use
// up the machine's pids.
func TestOrphansAreReapedMeanwhile(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		c := m.connect(m.policy())
		c.start(2, m.dir, "sh", "-c", "i=0; while [ $i -lt 200 ]; do (setsid true &); i=$((i+1)); done; echo ready; sleep 600")
		c.waitOut(2, "ready")
		testenv.Eventually(t, "no zombie below the helper", func() bool {
			return inState(c, "Z") == 0
		})
		c.send(2, protocol.Cancel{})
		c.collect(2)
		c.down()
	})
}

// scaffolding gives bubblewrap's supervisor, the namespace's init, and the command
// of the running execution, whose arguments hold word.
func (c *sup) scaffolding(word string) (outer, init, command int) {
	c.t.Helper()
	below := testenv.Descendants(c.cmd.Process.Pid)
	child := func(of int, word string) int {
		for _, p := range below {
			args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
			// A child of the command that has not executed anything yet, and is
			// orphaned, looks like it, but leads no session.
			if sid, _ := unix.Getsid(p.PID); p.PPID == of && strings.Contains(string(args), word) && (word == "bwrap" || sid == p.PID) {
				return p.PID
			}
		}
		return 0
	}
	outer = child(c.cmd.Process.Pid, "bwrap")
	init = child(outer, "bwrap")
	command = child(init, word)
	if command == 0 {
		c.t.Fatalf("no command below %d", init)
	}
	return outer, init, command
}

// Whoever stops or kills a part of the scaffolding from outside gets no guess out of
// the helper, and nothing stays.
func TestScaffoldingHitFromOutside(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, tc := range []struct {
			name string
			do   func(outer, init, command int)
			code int
		}{
			{"supervisor stopped", func(o, _, c int) { _ = unix.Kill(o, unix.SIGSTOP); _ = unix.Kill(c, unix.SIGTERM) }, 7},
			{"init stopped", func(_, i, c int) { _ = unix.Kill(i, unix.SIGSTOP); _ = unix.Kill(c, unix.SIGTERM) }, 7},
			{"both stopped", func(o, i, c int) {
				_ = unix.Kill(o, unix.SIGSTOP)
				_ = unix.Kill(i, unix.SIGSTOP)
				_ = unix.Kill(c, unix.SIGTERM)
			}, 7},
			{"supervisor killed", func(o, _, _ int) { _ = unix.Kill(o, unix.SIGKILL) }, 137},
			{"init killed", func(_, i, _ int) { _ = unix.Kill(i, unix.SIGKILL) }, 137},
			{"command killed", func(_, _, c int) { _ = unix.Kill(c, unix.SIGKILL) }, 137},
		} {
			t.Run(tc.name, func(t *testing.T) {
				m := jailed(t, u)
				adopt(t)
				c := m.connect(m.masked())
				c.until(2, m.dir, "sh", "-c", `trap 'exit 7' TERM; (setsid sleep 600 &); echo ready; while :; do sleep 0.01; done`)
				tc.do(c.scaffolding("exit 7"))
				r := c.collect(2)
				if r.exit == nil || r.exit.Code != tc.code || r.exit.Cancelled || has(r.exit.Enforcement, "skip:stage2") {
					t.Errorf("got %+v %+v", r.exit, r.fail)
				}
				c.sh(3, m.dir, "true")
				c.down()
				allGone(t, m.dir)
			})
		}
	})
}

// threads is a command whose first thread ends long before the others do.
const threads = `
import ctypes, os, sys, threading, time
def rest():
    while open("/proc/self/stat").read().rsplit(")", 1)[1].split()[0] != "Z": time.sleep(0.01)
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(4)
threading.Thread(target=rest).start()
ctypes.CDLL(None).syscall(EXIT, 0)
`

// A command goes on until its last thread has ended, and the ladder reaches it.
func TestFirstThreadEnds(t *testing.T) {
	py := testenv.Tool(t, "python3")
	script := strings.Replace(threads, "EXIT", fmt.Sprint(unix.SYS_EXIT), 1)
	everyMode(t, func(t *testing.T, m mode) {
		c := m.connect(m.policy())
		c.until(2, m.dir, py, "-c", script)
		c.send(2, protocol.ExecStdin{EOF: true})
		if r := c.collect(2); r.exit == nil || r.exit.Code != 4 || r.exit.Cancelled {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		c.until(3, m.dir, py, "-c", script)
		c.send(3, protocol.Cancel{})
		if r := c.collect(3); r.exit == nil || r.exit.Code != 143 || !r.exit.Cancelled {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		c.down()
	})
}

// A command that has stopped itself is no way to stay.
func TestStoppedCommand(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		c, tag := m.connect(m.policy()), uniqueSleep()
		c.until(2, m.dir, "sh", "-c", `(setsid sh -c 'kill -STOP $$; sleep `+tag+`' &); sleep `+tag+` & echo ready; kill -STOP $$; exit 9`)
		testenv.Eventually(t, "stopped shells", func() bool {
			return inState(c, "T") == 2
		})
		c.send(2, protocol.Cancel{})
		if r := c.collect(2); r.exit == nil || r.exit.Code != 137 || !r.exit.Cancelled || r.exit.TimedOut {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		c.down()
		if left := tagged(tag); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}
