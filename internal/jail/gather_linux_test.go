package jail

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
)

// A sleep is not a wait.
func TestWaits(t *testing.T) {
	for script, want := range map[string]bool{"sleep 600; true": true, "exec sleep 600": false} {
		cmd := exec.Command("sh", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		testenv.Eventually(t, "its sleep", func() bool {
			row, err := (realProc{}).stat(pid)
			kids, _ := (realProc{}).children(pid)
			comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
			return err == nil && row.state == 'S' && (want && len(kids) == 1 || string(comm) == "sleep\n")
		})
		testenv.Eventually(t, script, func() bool {
			row, err := (realProc{}).stat(pid)
			return err == nil && (realProc{}).waits(row) == want
		})
		_ = unix.Kill(-pid, unix.SIGKILL)
		_ = cmd.Wait()
	}
}

// An init that ends late is still reaped: by its own execution, or by the next.
func TestInitThatEndsLate(t *testing.T) {
	for _, tc := range []struct{ name, init string }{
		{"soon", "sleep 0.05"},
		{"after its execution", "read x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", tc.init)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pid := cmd.Process.Pid
			there := func() bool { _, err := os.Stat("/proc/" + strconv.Itoa(pid)); return err == nil }
			gather := func(init int) bool {
				_, s, _ := newFake()
				s.reaped, s.lingers, s.p.init = true, true, init
				if s.p.initFD, err = unix.PidfdOpen(init, 0); err != nil {
					t.Fatal(err)
				}
				return s.gather()
			}
			if gather(pid) {
				t.Error("what was left is not said")
			}
			if tc.name != "soon" {
				if !there() {
					t.Fatal("it has ended by itself")
				}
				_ = in.Close()
				dead := func(pid int) {
					testenv.Eventually(t, "its end", func() bool {
						row, err := (realProc{}).stat(pid)
						return err == nil && row.state == 'Z'
					})
				}
				dead(pid)
				next := exec.Command("true")
				if err := next.Start(); err != nil {
					t.Fatal(err)
				}
				dead(next.Process.Pid)
				gather(next.Process.Pid)
			}
			if there() {
				t.Error("it was not reaped")
			}
			forks.Lock()
			defer forks.Unlock()
			if len(forks.left) > 0 {
				t.Errorf("still remembered: %v", forks.left)
			}
		})
	}
}
