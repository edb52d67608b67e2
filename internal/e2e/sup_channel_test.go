//go:build linux

package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// half is the first half of a frame.
func half(t *testing.T) []byte {
	t.Helper()
	b, err := protocol.AppendFrame(nil, 2, protocol.ExecStdin{Data: make([]byte, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	return b[:len(b)/2]
}

// A conversation may end in the middle of a frame; the command's handler runs, and
// its end is told.
func TestEndInsideAFrame(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		for _, tc := range []struct {
			name   string
			do     func(c *sup)
			status int
		}{
			{"TERM", func(c *sup) { _ = c.cmd.Process.Signal(syscall.SIGTERM) }, 0},
			{"closed stdin", func(c *sup) { c.in.Close() }, 1},
			{"TERM twice, then closed stdin", func(c *sup) {
				_ = c.cmd.Process.Signal(syscall.SIGTERM)
				_ = c.cmd.Process.Signal(syscall.SIGTERM)
				c.in.Close()
			}, 0},
		} {
			t.Run(tc.name, func(t *testing.T) {
				m := mode{m.name, t, m.u, m.dir}
				c, tag := m.connect(m.policy()), uniqueSleep()
				c.until(2, m.dir, "sh", "-c", `trap 'echo handled; exit 7' TERM; (setsid sleep `+tag+` &); echo ready; while :; do sleep 0.01; done`)
				c.raw(half(t))
				tc.do(c)
				r, malformed := result{}, false
				for {
					f, err := c.out.Next()
					if err != nil {
						break
					}
					switch b := f.Body.(type) {
					case protocol.ExecExit:
						r.exit = &b
					case protocol.ExecOut:
						r.stdout += string(b.Data)
					case protocol.ErrorBody:
						malformed = f.ID == 0 && b.Code == protocol.CodeMalformedFrame
					}
				}
				if r.exit == nil || r.exit.Code != 7 || !r.exit.Cancelled || !strings.Contains(r.stdout, "handled") {
					t.Errorf("got %+v %q", r.exit, r.stdout)
				}
				if tc.name == "closed stdin" && !malformed {
					t.Error("the cut frame was not told")
				}
				code := c.wait()
				if tc.name == "TERM twice, then closed stdin" && code == 1 {
					return // the cut frame may be heard first
				}
				if code != tc.status {
					t.Errorf("exit %d: %s", code, c.stderr)
				}
				if left := tagged(tag); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	})
}

// A broker that closes only its reading side has lost its helper: the first frame
// shows it.
func TestReadingSideClosed(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		adopt(t)
		c := m.connect(m.masked())
		c.until(2, m.dir, "sh", "-c", "trap '' TERM PIPE; (setsid sleep 600 &); echo ready; while :; do echo x; sleep 0.01; done 2>/dev/null")
		c.stdout.Close()
		_ = c.cmd.Wait()
		if code := c.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(c.stderr.String(), "cannot write a frame") {
			t.Errorf("exit %d: %s", code, c.stderr)
		}
		allGone(t, m.dir)
	})
}

// One socket may carry both directions; half of it closed is the end of stdin.
func TestSocketHalfClosed(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := os.NewFile(uintptr(pair[0]), "broker"), os.NewFile(uintptr(pair[1]), "helper")
		defer ours.Close()
		cmd := testenv.As(t, m.command(), m.u)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(m.policy().Append(nil))
		w.Close()
		cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = theirs, theirs, []*os.File{r}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		r.Close()
		c := &sup{conn: &conn{t: t, cmd: cmd, stderr: &syncBuffer{}, user: m.u, in: ours, out: protocol.NewReader(ours)}, stdout: ours}
		c.greet()
		c.until(2, m.dir, "sh", "-c", `trap 'echo handled; exit 7' TERM; echo ready; while :; do sleep 0.01; done`)
		if err := unix.Shutdown(pair[0], unix.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		if r := c.collect(2); r.exit == nil || r.exit.Code != 7 || !r.exit.Cancelled {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		if code := c.wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
	})
}

// A helper that was stopped for a while goes on where it was; one that is killed
// while it is stopped takes everything along.
func TestStoppedHelper(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		adopt(t)
		c, tag := m.connect(m.masked()), uniqueSleep()
		stop := func() {
			_ = c.cmd.Process.Signal(syscall.SIGSTOP)
			testenv.Eventually(t, "a stopped helper", func() bool { return testenv.Processes()[c.cmd.Process.Pid].State == "T" })
		}
		c.start(2, m.dir, "sh", "-c", "head -c 20000000 /dev/zero; exit 3")
		for range 3 {
			stop()
			c.send(9, protocol.Heartbeat{})
			time.Sleep(30 * time.Millisecond)
			_ = c.cmd.Process.Signal(syscall.SIGCONT)
		}
		bytes, beats := 0, 0
		for done := false; !done || beats < 3; {
			switch b := c.next().Body.(type) {
			case protocol.ExecOut:
				bytes += len(b.Data)
			case protocol.Heartbeat:
				beats++
			case protocol.ExecExit:
				if done = true; b.Code != 3 || b.Cancelled || bytes != 20000000 {
					t.Errorf("%d bytes, %+v", bytes, b)
				}
			default:
				t.Fatalf("got %+v", b)
			}
		}
		c.until(3, m.dir, "sh", "-c", "sleep "+tag+" & echo ready; exec sleep "+tag)
		stop()
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		if m.degraded() { // where only the command itself is promised to go
			for _, pid := range tagged(tag) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		nobodyLives(t, "SIGKILL of a stopped helper")
		m.pristine()
	})
}
