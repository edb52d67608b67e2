//go:build linux

package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
)

// leashOf is the process that outlives this helper by a moment.
func (c *sup) leashOf() (pid int) {
	c.t.Helper()
	for _, p := range testenv.Processes() {
		if p.PPID == c.cmd.Process.Pid && testenv.IsLeash(p.PID) {
			pid = p.PID
		}
	}
	if pid == 0 {
		c.t.Fatal("there is no such process")
	}
	return pid
}

// The process that outlives a helper holds no orderly end up and does not stay either
// where somebody stopped it, and no helper needs it for anything else.
func TestLeashThatIsHit(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		adopt(t)
		for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL, unix.SIGTERM} {
			for _, kill := range []bool{false, true} {
				c := m.connect(m.policy())
				if err := unix.Kill(c.leashOf(), sig); err != nil {
					t.Fatal(err)
				}
				if r := c.sh(2, m.dir, "echo ran"); r.stdout != "ran\n" {
					t.Errorf("%v: got %q, %+v", sig, r.stdout, r.fail)
				}
				began := time.Now()
				if kill {
					_ = c.cmd.Process.Kill()
					_ = c.cmd.Wait()
				} else {
					c.down()
				}
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("%v: the end took %v", sig, took)
				}
				nobodyLives(t, fmt.Sprintf("%v and SIGKILL %v", sig, kill))
			}
		}
	})
}

// A helper that cannot start it says so in one line, whatever the step that lacks a
// descriptor: what it inherits moves the numbers.
func TestLeashWithoutDescriptors(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		met := 0
		for _, inherited := range []string{"", "exec 5<&0;", "exec 5<&0 6<&0;", "exec 5<&0 6<&0 7<&0;"} {
			for n := 9; n < 22; n++ {
				cmd := exec.Command("sh", "-c", fmt.Sprintf("%s ulimit -n %d; exec \"$@\"", inherited, n), "sh", testenv.Binary(t))
				c := m.spawnCmd(cmd, m.policy())
				c.hangUp()
				_ = c.cmd.Wait()
				text := c.stderr.String()
				if strings.Contains(text, "cleans up after a killed helper") {
					met++
					if strings.Count(text, "\n") != 1 || !strings.Contains(text, "too many open files; raise") {
						t.Errorf("%s %d descriptors: %q", inherited, n, text)
					}
				}
			}
		}
		if met == 0 {
			t.Error("no limit kept it from starting")
		}
	})
}
