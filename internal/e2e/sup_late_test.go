//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// stopFor stops the helper longer than one of its bounds, and lets it go on.
func (c *sup) stopFor(d time.Duration, meanwhile func()) {
	c.t.Helper()
	pid := c.cmd.Process.Pid
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		c.t.Fatal(err)
	}
	testenv.Eventually(c.t, "a stopped helper", func() bool { return testenv.Processes()[pid].State == "T" })
	if meanwhile != nil {
		meanwhile()
	}
	time.Sleep(d)
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		c.t.Fatal(err)
	}
}

// A helper that was stopped hears of its timers before it hears of what came in time:
// it gives nothing up for that, and claims nothing.
func TestHelperThatWasStopped(t *testing.T) {
	const beyond = 11 * time.Second // the bound on the policy and on the end is 10
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		t.Run("while its policy came", func(t *testing.T) {
			t.Parallel()
			m := jailed(t, u)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := testenv.As(t, m.command(), u)
			c := &sup{conn: startConn(t, cmd, u, r)}
			b := m.policy().Append(nil)
			if _, err := w.Write(b[:1]); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, "a reader of the policy", func() bool {
				n, err := unix.IoctlGetInt(int(w.Fd()), unix.TIOCINQ)
				return err == nil && n == 0
			})
			c.stopFor(beyond, func() {
				if _, err := w.Write(b[1:]); err != nil {
					t.Fatal(err)
				}
				w.Close()
			})
			c.greet()
			c.sh(2, m.dir, "true")
			c.down()
		})
		for _, name := range []string{"bwrap", "degraded"} {
			t.Run("while it ended, "+name, func(t *testing.T) {
				t.Parallel()
				m := mode{name, t, u, testenv.TempDir(t, u)}
				c := m.connect(m.policy())
				got := testenv.NewMarker(m.dir, "got")
				c.until(2, m.dir, "sh", "-c", `trap '`+got.Shell("x")+`; sleep 1; echo handled; exit 7' TERM; echo ready; while :; do sleep 0.01; done`)
				c.send(9, protocol.Shutdown{})
				got.Wait(t)
				c.stopFor(beyond, nil)
				r := c.collect(2)
				if r.exit == nil || r.exit.Code != 7 || !r.exit.Cancelled || r.stdout != "handled\n" || r.exit.StdoutTruncated {
					t.Errorf("got %+v %+v %q", r.exit, r.fail, r.stdout)
				}
				if code := c.wait(); code != 0 {
					t.Errorf("exit %d: %s", code, c.stderr)
				}
			})
			t.Run("while a command ended, "+name, func(t *testing.T) {
				t.Parallel()
				m := mode{name, t, u, testenv.TempDir(t, u)}
				p := m.policy()
				p.Limits.WallSeconds = 9
				c := m.connect(p)
				got := testenv.NewMarker(m.dir, "got")
				c.until(2, m.dir, "sh", "-c", `echo ready; read x; `+got.Shell("x")+`; sleep 1; head -c 5000 /dev/zero; exit 5`)
				c.send(2, protocol.ExecStdin{Data: []byte("go\n")})
				got.Wait(t)
				c.stopFor(beyond, nil)
				r := c.collect(2)
				if r.exit == nil || r.exit.Code != 5 || r.exit.Cancelled || r.exit.TimedOut || len(r.stdout) != 5000 || r.exit.StdoutTruncated {
					t.Errorf("got %+v %+v, %d bytes", r.exit, r.fail, len(r.stdout))
				}
				c.down()
			})
		}
	})
}

// What a command left and nobody can kill is said, and changes neither how the command
// ended nor how the next one does.
func TestLeftoverThatCannotDie(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		fs := m.stuckDir()
		tag := uniqueSleep()
		c := m.connect(m.policy())
		c.start(2, m.dir, "sh", "-c", "ls stuck/"+tag+" & echo ready; read x; exit 3")
		c.waitOut(2, "ready")
		fs.hangs()
		c.send(2, protocol.ExecStdin{EOF: true})
		r := c.collect(2)
		said := r.entries()
		if r.exit == nil || r.exit.Code != 3 || r.exit.Signal != 0 || r.exit.Cancelled || !strings.Contains(said, "did not die after SIGKILL") {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		r = c.sh(3, m.dir, "setsid sleep "+tag+" & echo hi")
		if r.exit.WallMS > 4000 || strings.Contains(r.entries(), "did not die") {
			t.Errorf("the next one: %+v", r.exit)
		}
		if left := tagged("sleep\x00" + tag); len(left) > 0 {
			t.Errorf("what the next one left is still there: %v", left)
		}
		c.send(9, protocol.Shutdown{})
		if code := c.wait(); code != 1 || !strings.Contains(c.stderr.String(), "could not be ended") {
			t.Errorf("exit %d: %s", code, c.stderr)
		}
		fs.end()
		testenv.Eventually(t, "the end of what was left", func() bool { return len(tagged(tag)) == 0 })
	})
}

// Neither do a cancel and its KILL keep that from being said.
func TestLeftoverOfACancel(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		fs := m.stuckDir()
		tag := uniqueSleep()
		c := m.connect(m.policy())
		c.start(2, m.dir, "sh", "-c", "trap '' TERM; ls stuck/"+tag+" & echo ready; wait; sleep 600")
		c.waitOut(2, "ready")
		fs.hangs()
		c.send(2, protocol.Cancel{})
		r := c.collect(2)
		if r.exit == nil || r.exit.Code != 137 || !r.exit.Cancelled || !strings.Contains(r.entries(), "did not die after SIGKILL") {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		r = c.sh(3, m.dir, "echo hi")
		if r.exit.WallMS > 4000 || strings.Contains(r.entries(), "did not die") {
			t.Errorf("the next one: %+v", r.exit)
		}
		c.send(9, protocol.Shutdown{})
		if code := c.wait(); code != 1 || !strings.Contains(c.stderr.String(), "could not be ended") {
			t.Errorf("exit %d: %s", code, c.stderr)
		}
		fs.end()
		testenv.Eventually(t, "the end of what was left", func() bool { return len(tagged(tag)) == 0 })
	})
}

func (r result) entries() string {
	if r.exit == nil {
		return ""
	}
	return strings.Join(r.exit.Enforcement, "\n")
}

// A command that cannot die keeps neither the rest of its tree alive nor the helper
// from telling of it before it ends.
func TestEndWhileACommandCannotDie(t *testing.T) {
	twoModes(t, func(t *testing.T, m mode) {
		fs := m.stuckDir()
		tag := uniqueSleep()
		c := m.connect(m.policy())
		c.start(2, m.dir, "sh", "-c", "trap '' TERM; setsid sleep "+tag+" & echo ready; exec ls stuck/"+tag)
		c.waitOut(2, "ready")
		fs.hangs()
		testenv.Eventually(t, "the sleeper", func() bool { return len(tagged("sleep\x00"+tag)) > 0 })
		c.send(9, protocol.Shutdown{})
		r := c.collect(2)
		if r.exit == nil || r.exit.Code != 137 || !r.exit.Cancelled || !has(r.exit.Enforcement, "skip:stage2") {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		if left := tagged("sleep\x00" + tag); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if code := c.wait(); code != 1 {
			t.Errorf("exit %d: %s", code, c.stderr)
		}
		fs.end()
		testenv.Eventually(t, "the end of what was left", func() bool { return len(tagged(tag)) == 0 })
	})
}

// A bubblewrap whose file hangs holds up no stop either.
func TestBubblewrapOnAHangingFileSystem(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) { bubblewrapHangs(t, u) })
}

// The same where Go's runtime has one processor for the helper, and where it collects
// garbage all the time: a fork that does not return stops neither.
func TestHangingForkStopsNothing(t *testing.T) {
	for _, setting := range []string{"GOMAXPROCS=1", "GOGC=1"} {
		t.Run(setting, func(t *testing.T) {
			u := testenv.Me()
			u.Home = testenv.TempDir(t, u)
			bubblewrapHangs(t, u, setting)
		})
	}
}

func bubblewrapHangs(t *testing.T, u testenv.User, env ...string) {
	m := jailed(t, u)
	dir := filepath.Join(m.u.Home, "bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeMode(t, filepath.Join(dir, "bwrap"), "#!/bin/sh\nexec /usr/bin/bwrap \"$@\"\n", 0o755)
	cmd := m.command("--standby=off", "--bwrap", filepath.Join(dir, "bwrap"))
	cmd.Env = append(os.Environ(), env...)
	c := m.connectCmd(cmd, m.policy())
	c.sh(2, m.dir, "true")
	fs := hangingFS(t, dir)
	c.start(3, m.dir, "true")
	fs.hangs()
	asked := time.Now()
	c.send(3, protocol.Cancel{})
	r := c.collect(3)
	if r.exit == nil || r.exit.Code != 143 || !r.exit.Cancelled || !has(r.exit.Enforcement, "skip:stage2") {
		t.Errorf("got %+v %+v", r.exit, r.fail)
	}
	if took := time.Since(asked); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
	c.start(4, m.dir, "true")
	c.send(9, protocol.Shutdown{})
	if r := c.collect(4); r.exit == nil || r.exit.Code != 143 || !r.exit.Cancelled {
		t.Errorf("got %+v %+v", r.exit, r.fail)
	}
	testenv.Eventually(t, "the helper's end", func() bool { return testenv.Processes()[c.cmd.Process.Pid].State == "Z" })
	fs.end()
	if code := c.wait(); code != 1 || !strings.Contains(c.stderr.String(), "cannot end within") {
		t.Errorf("exit %d: %s", code, c.stderr)
	}
}

// A look at the host that hangs is no way to stay.
func TestStartOnAHangingFileSystem(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		fs := m.stuckDir()
		c := m.spawnCmd(m.command("--bwrap", filepath.Join(fs.dir, "bwrap")), m.policy())
		fs.hangs()
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		testenv.Eventually(t, "the helper's end", func() bool { return testenv.Processes()[c.cmd.Process.Pid].State == "Z" })
		fs.end()
		if code := c.wait(); code != 1 || !strings.Contains(c.stderr.String(), "file system") {
			t.Errorf("exit %d: %s", code, c.stderr)
		}
	})
}
