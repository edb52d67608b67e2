package jail

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

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

// The 32-bit bubblewrap of a 64-bit kernel waits by another number.
func TestWaitsOfANarrowProgram(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module narrow\n", "main.go": `package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

func init() { runtime.LockOSThread() } // the first thread

func main() {
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_ = cmd.Start()
	_, _ = syscall.Wait4(cmd.Process.Pid, nil, 0, nil)
}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "narrow", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOARCH="+map[string]string{"amd64": "386", "arm64": "arm"}[runtime.GOARCH])
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(filepath.Join(dir, "narrow"))
	if err := cmd.Start(); errors.Is(err, unix.ENOEXEC) {
		testenv.Skip(t, "narrow", "this kernel runs no 32-bit programs: "+err.Error())
	} else if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	testenv.Eventually(t, "its wait", func() bool {
		row, err := (realProc{}).stat(cmd.Process.Pid)
		kids, _ := (realProc{}).children(cmd.Process.Pid)
		return err == nil && len(kids) == 1 && (realProc{}).waits(row)
	})
	if narrow(os.Getpid()) {
		t.Error("this program is taken for one")
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

// A fork that hangs under the lock holds the end of no other execution up.
func TestGatherBesideAForkThatHangs(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, s, _ := newFake()
	s.reaped, s.p.init = true, cmd.Process.Pid
	var err error
	if s.p.initFD, err = unix.PidfdOpen(s.p.init, 0); err != nil {
		t.Fatal(err)
	}
	forks.Lock()
	defer forks.Unlock()
	done := make(chan bool)
	go func() { done <- s.gather() }()
	select {
	case clean := <-done:
		if !clean {
			t.Error("what has ended is said to be left")
		}
	case <-time.After(testenv.Patience):
		t.Fatal("it waits for the fork")
	}
}
