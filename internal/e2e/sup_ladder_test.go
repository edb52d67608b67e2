//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/protocol"
)

// worker is a shell function: a process that says that it is up, and that it got TERM.
const worker = `worker() { exec sh -c 'trap "touch $0.got; exit 0" TERM; touch $0.up; while :; do sleep 0.02; done' "$1"; }
await() { for f; do while [ ! -e "$f" ]; do sleep 0.02; done; done; }
`

// TERM goes to the command and all its descendants, wherever they went, and not to
// the scaffolding: the command's own handler runs to its end.
func TestTermReachesEveryDescendant(t *testing.T) {
	everyMode(t, func(t *testing.T, m mode) {
		names := []string{"child", "session", "daemon", "orphan"}
		script := worker + `
(worker child) &
(setsid sh -c 'trap "touch session.got; exit 0" TERM; touch session.up; while :; do sleep 0.02; done') &
( (worker orphan) & )
( setsid sh -c 'trap "touch daemon.got; exit 0" TERM; touch daemon.up; while :; do sleep 0.02; done' & )
`
		var args []string
		if !m.degraded() {
			args = []string{"--allow-nested-userns"}
			names = append(names, "nested")
			script += `unshare -Upf sh -c 'trap "touch nested.got; exit 0" TERM; touch nested.up; while :; do sleep 0.02; done' &` + "\n"
		}
		list := func(suffix string) string { return strings.Join(names, suffix+" ") + suffix }
		script += "trap 'await " + list(".got") + "; echo handled; exit 5' TERM\nawait " + list(".up") + "\necho ready\nwhile :; do sleep 0.02; done"
		c := m.connect(m.policy(), args...)
		c.until(2, m.dir, "sh", "-c", script)
		c.send(2, protocol.Cancel{})
		r := c.collect(2)
		for _, n := range names {
			if _, err := os.Stat(filepath.Join(m.dir, n+".got")); err != nil {
				t.Errorf("%s got no TERM", n)
			}
		}
		if r.exit == nil || r.exit.Code != 5 || r.exit.Signal != 0 || !r.exit.Cancelled || !strings.Contains(r.stdout, "handled") {
			t.Errorf("got %+v %+v %q", r.exit, r.fail, r.stdout)
		}
		c.down()
	})
}

// Whoever ignores TERM is gone after the grace, with all it started.
func TestTermIgnored(t *testing.T) {
	everyMode(t, func(t *testing.T, m mode) {
		c, tag := m.connect(m.policy()), uniqueSleep()
		c.until(2, m.dir, "sh", "-c", `trap '' TERM; (setsid sleep `+tag+` &); sleep `+tag+` & echo ready; while :; do sleep 1; done`)
		if len(tagged(tag)) == 0 {
			t.Error("the marked processes do not show")
		}
		c.send(2, protocol.Cancel{})
		c.send(2, protocol.Cancel{})
		if r := c.collect(2); r.exit == nil || r.exit.Code != 137 || r.exit.Signal != 9 || !r.exit.Cancelled || r.exit.TimedOut || r.exit.WallMS < 2000 {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		c.down()
		if left := tagged(tag); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// What a command's end looks like, by itself.
func TestEveryExit(t *testing.T) {
	everyMode(t, func(t *testing.T, m mode) {
		c := m.connect(m.policy())
		id := uint64(1)
		step := scaled(1, 17)
		if m.u.UID != 0 && !m.degraded() {
			step = scaled(1, 3)
		}
		for code := 0; code < 256; code += step {
			id++
			if r := c.try(id, m.dir, fmt.Sprintf("exit %d", code)); r.exit.Code != code || r.exit.Signal != 0 || r.exit.Cancelled || r.exit.TimedOut {
				t.Errorf("exit %d: got %+v", code, r.exit)
			}
		}
		for _, sig := range []syscall.Signal{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31, 34, 64} {
			id++
			// Blocked or ignored signals that the helper has would show here.
			r := c.try(id, m.dir, fmt.Sprintf("kill -%d $$; sleep 60", sig))
			if r.exit.Code != 128+int(sig) || r.exit.Cancelled || r.exit.TimedOut {
				t.Errorf("signal %d: got %+v", sig, r.exit)
			}
			if s := r.exit.Signal; s != int(sig) && (s != 0 || m.degraded()) { // 0 before Linux 6.15
				t.Errorf("signal %d is reported as %d", sig, s)
			} else if m.name == "old" && s != 0 {
				t.Error("this kernel tells after all")
			}
		}
		c.down()
	})
}

// A helper that was started with signals ignored gives its command fresh ones.
func TestIgnoredSignalsAreReset(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		cmd := m.command()
		cmd.Args = append([]string{"sh", "-c", `trap '' HUP INT QUIT PIPE TERM USR1; exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		if m.degraded() {
			cmd.Args[4] = fmt.Sprintf("/proc/%d/exe", os.Getpid())
			if m.u.UID != os.Getuid() {
				return // this user cannot execute the wrapper by that name
			}
		}
		c := m.connectCmd(cmd, m.policy())
		for i, sig := range []string{"HUP", "INT", "QUIT", "PIPE", "TERM", "USR1"} {
			if r := c.try(uint64(2+i), m.dir, "kill -"+sig+" $$; sleep 60"); r.exit.Code < 129 {
				t.Errorf("%s: got %+v", sig, r.exit)
			}
		}
		c.cmd.Process.Signal(syscall.SIGTERM)
		if code := c.wait(); code != 0 {
			t.Errorf("exit %d after TERM: %s", code, c.stderr)
		}
	})
}

// A cancel may come at any moment. What is said about it is never a guess: without
// the ladder the command's own status, with it a status that the ladder explains.
func TestCancelAtAnyMoment(t *testing.T) {
	everyMode(t, func(t *testing.T, m mode) {
		c := m.connect(m.policy())
		seen := map[bool]int{}
		for i := range uint64(scaled(400, 40)) {
			id := 2 + i
			c.start(id, m.dir, "sh", "-c", "exit 3")
			time.Sleep(time.Duration(rand.IntN(30000)) * time.Microsecond)
			for range 1 + i%2 {
				c.send(id, protocol.Cancel{})
			}
			r := c.collect(id)
			if r.exit == nil {
				t.Fatalf("got %+v", r.fail)
			}
			x := r.exit
			seen[x.Cancelled]++
			if x.TimedOut || !x.Cancelled && x.Code != 3 || x.Cancelled && x.Code != 3 && x.Code != 143 && x.Code != 137 {
				t.Errorf("got %+v", x)
			}
		}
		t.Logf("by cancelled: %v", seen)
		// At once: long before a command could run.
		c.start(5000, m.dir, "sleep", "600")
		c.send(5000, protocol.Cancel{})
		if r := c.collect(5000); r.exit == nil || !r.exit.Cancelled || r.exit.Code != 143 && r.exit.Code != 137 {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		c.down()
	})
}

// Whoever ends the conversation ends the command by the ladder, and hears of it
// where there is still somebody to hear.
func TestEndsOfTheConversation(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		for _, tc := range []struct {
			name   string
			do     func(c *sup)
			status int
		}{
			{"shutdown", func(c *sup) { c.send(9, protocol.Shutdown{}) }, 0},
			{"closed stdin", func(c *sup) { c.in.Close() }, 0},
			{"TERM", func(c *sup) { c.cmd.Process.Signal(syscall.SIGTERM) }, 0},
			{"INT", func(c *sup) { c.cmd.Process.Signal(syscall.SIGINT) }, 0},
			{"HUP", func(c *sup) { c.cmd.Process.Signal(syscall.SIGHUP) }, 0},
			{"malformed frame", func(c *sup) { c.raw([]byte{0, 0, 0, 1, 0xc1}) }, 1},
		} {
			t.Run(tc.name, func(t *testing.T) {
				m := mode{m.name, t, m.u, m.dir}
				c, tag := m.connect(m.policy()), uniqueSleep()
				c.until(2, m.dir, "sh", "-c", `trap 'echo handled; exit 7' TERM; (setsid sleep `+tag+` &); echo ready; while :; do sleep 0.01; done`)
				tc.do(c)
				var exit *protocol.ExecExit
				var out string
				for {
					f, err := c.out.Next()
					if err != nil {
						break
					}
					switch b := f.Body.(type) {
					case protocol.ExecOut:
						out += string(b.Data)
					case protocol.ExecExit:
						exit = &b
					case protocol.ErrorBody:
						if tc.status == 0 {
							t.Errorf("got %+v", b)
						}
					}
				}
				if exit == nil || exit.Code != 7 || !exit.Cancelled || exit.TimedOut || !strings.Contains(out, "handled") {
					t.Errorf("got %+v, %q", exit, out)
				}
				if code := c.wait(); code != tc.status {
					t.Errorf("exit %d: %s", code, c.stderr)
				}
				if left := tagged(tag); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	})
}

// The deadline climbs the same ladder and is told from a cancel.
func TestDeadlineInEveryMode(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		// Longer where a busy machine does not get to the trap within it.
		for wall, over := uint64(1), false; !over; wall *= 2 {
			p := m.policy()
			p.Limits.WallSeconds = wall
			c := m.connect(p)
			r := c.try(2, m.dir, `trap 'exit 9' TERM; echo set; while :; do sleep 0.01; done`)
			if over = r.stdout != "" || wall >= 32; over && (r.exit.Code != 9 || r.stdout != "set\n") {
				t.Errorf("got %+v, %q", r.exit, r.stdout)
			}
			if !r.exit.TimedOut || !r.exit.Cancelled || r.exit.WallMS < 1000*wall {
				t.Errorf("got %+v", r.exit)
			}
			c.down()
		}
	})
}
