//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// probeHangs are bubblewraps that never answer a question, or never end their trial.
var probeHangs = map[string]string{
	"version": `case $1 in --version) hang;; esac; exec /usr/bin/bwrap "$@"`,
	"help":    `case $1 in --help) hang;; esac; exec /usr/bin/bwrap "$@"`,
	"trial":   `case $1 in --version|--help) exec /usr/bin/bwrap "$@";; esac; hang`,
}

// hangingBwrap writes one whose processes hold tag in their arguments: its own, a
// child, and one that left its session and was orphaned.
func (m mode) hangingBwrap(at, tag string) string {
	path := filepath.Join(m.u.Home, "bwrap-"+at)
	writeMode(m.t, path, "#!/bin/sh\nhang() { (setsid sleep "+tag+" &); sleep "+tag+" & exec sleep "+tag+"; }\n"+probeHangs[at]+"\n", 0o755)
	return path
}

// The look at bubblewrap cannot hold up an end, nor outlive its helper.
func TestHangingProbe(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for at := range probeHangs {
			for _, tc := range []struct {
				name string
				do   func(c *sup)
			}{
				{"TERM", func(c *sup) { _ = c.cmd.Process.Signal(syscall.SIGTERM) }},
				{"closed stdin", func(c *sup) { c.in.Close() }},
				{"closed stdin behind frames", func(c *sup) {
					c.send(1, protocol.Hello{Proto: protocol.ExecVersion, Peer: "e2e"})
					for i := range uint64(200) {
						c.send(2+i, protocol.Heartbeat{})
					}
					c.in.Close()
				}},
				{"shutdown", func(c *sup) {
					c.send(1, protocol.Hello{Proto: protocol.ExecVersion, Peer: "e2e"})
					c.send(2, protocol.Shutdown{})
				}},
				{"broker dies", func(c *sup) { c.hangUp() }},
				{"KILL", func(c *sup) { _ = c.cmd.Process.Kill() }},
			} {
				if at != "trial" && tc.name != "TERM" && tc.name != "KILL" {
					continue
				}
				t.Run(at+"/"+tc.name, func(t *testing.T) {
					m := jailed(t, u)
					adopt(t)
					tag := uniqueSleep()
					c := m.spawnCmd(m.command("--bwrap", m.hangingBwrap(at, tag)), m.policy())
					testenv.Eventually(t, "the hanging bubblewrap", func() bool { return len(tagged(tag)) == 3 })
					asked := time.Now()
					tc.do(c)
					_ = c.cmd.Wait()
					if took := time.Since(asked); took > 15*time.Second { // of the 30 that a trial has
						t.Errorf("the end took %v", took)
					}
					switch code := c.cmd.ProcessState.ExitCode(); tc.name {
					case "KILL", "broker dies": // which loses the hello
					default:
						if code != 0 {
							t.Errorf("exit %d: %s", code, c.stderr)
						}
					}
					nobodyLives(t, tc.name)
					if left := tagged(tag); len(left) > 0 {
						t.Errorf("left: %v", left)
					}
				})
			}
		}
	})
}

// SIGKILL to the helper at any moment of its start leaves nothing of the real
// bubblewrap's trial.
func TestSIGKILLWhileStarting(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		adopt(t)
		for i := range scaled(250, 40) {
			c := m.spawnCmd(m.command(), m.policy())
			time.Sleep(time.Duration(i%40) * time.Millisecond / 2)
			_ = c.cmd.Process.Kill()
			_ = c.cmd.Wait()
			nobodyLives(t, fmt.Sprintf("SIGKILL in round %d", i))
		}
	})
}

// A signal while the policy has not come whole yet is an orderly end as well.
func TestEndBeforeThePolicy(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		m := jailed(t, u)
		cmd := testenv.As(t, m.command(), u)
		cmd.ExtraFiles = []*os.File{r}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r.Close()
		if _, err := w.Write([]byte{0x89}); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, "a reader of the policy", func() bool {
			n, err := unix.IoctlGetInt(int(w.Fd()), unix.TIOCINQ)
			return err == nil && n == 0
		})
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("got %v, expected exit 0", err)
		}
	})
}
