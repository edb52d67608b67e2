//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// The roles "held" and "holder" of this binary slow one system call of bubblewrap
// down: the prctl by which the namespace's init binds its life to its parent's. It
// comes after init has forked stage 2, so on a loaded machine the command can run
// before it.
const heldDirEnv = "SANDBOXD_E2E_HELD"

// heldAtEnv, set, slows another one down instead: the write by which bubblewrap's
// supervisor releases what it cloned, just after it bound its own life to the helper's.
const heldAtEnv = "SANDBOXD_E2E_HELD_AT"

// held asks a holder about every PR_SET_PDEATHSIG from here on.
func held() error {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PRCTL, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // the first argument
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.PR_SET_PDEATHSIG, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if os.Getenv(heldAtEnv) != "" {
		program[1].K, program[2].K, program[3].K = unix.SYS_WRITE, 32, 8 // eventfd(2): eight bytes
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return e
	}
	holder := exec.Command("/proc/self/exe")
	holder.Env = append(os.Environ(), roleEnv+"=holder")
	holder.ExtraFiles = []*os.File{os.NewFile(fd, "listener")}
	holder.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a stopped init brings SIGHUP to its group
	return holder.Start()
}

// hold answers until nobody is left to ask: init's call when the file "release" is
// there, every other at once.
func hold() error {
	// What bubblewrap was given came along; the listener alone is this role's.
	if err := unix.CloseRange(4, ^uint(0), 0); err != nil {
		return err
	}
	dir := os.Getenv(heldDirEnv)
	exists := func(name string) bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	answer := func(id uint64) {
		a := struct {
			id    uint64
			val   int64
			error int32
			flags uint32
		}{id: id, flags: 1} // SECCOMP_USER_NOTIF_FLAG_CONTINUE
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, 3, 0xc0182101, uintptr(unsafe.Pointer(&a))) // SECCOMP_IOCTL_NOTIF_SEND
	}
	var stop time.Time // when init is stopped
	for init := 0; ; {
		if !stop.IsZero() && time.Now().After(stop) {
			stop = time.Time{}
			_ = unix.Kill(init, unix.SIGSTOP)
			_ = os.WriteFile(filepath.Join(dir, "held"), nil, 0o644)
		}
		if exists("release") && init > 0 {
			_ = unix.Kill(init, unix.SIGCONT)
			if state := testenv.Processes()[init].State; state == "" || state == "Z" {
				init = 0
			}
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: 3, Events: unix.POLLIN}}, 20)
		if err == nil && n == 0 && init == 0 && exists("done") {
			return nil // the filter is its own too, so the listener has no end
		}
		if n <= 0 {
			continue
		}
		var ask struct {
			id         uint64
			pid, flags uint32
			data       [64]byte
		}
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, 3, 0xc0502100, uintptr(unsafe.Pointer(&ask))); e != 0 { // SECCOMP_IOCTL_NOTIF_RECV
			continue // whoever asked has died
		}
		if os.Getenv(heldAtEnv) != "" {
			_ = os.WriteFile(filepath.Join(dir, "held"), nil, 0o644) // and no answer
			continue
		}
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", ask.pid))
		if exists("release") || !strings.Contains(string(status), "NSpid:\t"+fmt.Sprint(ask.pid)+"\t1\n") {
			answer(ask.id)
			continue
		}
		// Unanswered it sleeps, as in wait(2): long enough to be taken for settled by
		// whoever asks no further. Stopped it makes the call again, once it goes on.
		init, stop = int(ask.pid), time.Now().Add(300*time.Millisecond)
	}
}

// copyOfMyself is this test binary where the user can execute it.
func (m mode) copyOfMyself() string {
	m.t.Helper()
	path := filepath.Join(m.u.Home, "e2e.test")
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		m.t.Fatal(err)
	}
	defer in.Close()
	_ = os.Remove(path) // the copy before this one may still run: ETXTBSY
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
		err = errors.Join(err, out.Close())
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return path
}

// The command does not run before init's life hangs on its parent's: a helper that
// was killed in between would leave the jail behind.
func TestCommandWaitsForItsInit(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, end := range []string{"none", "kill", "cancel", "shutdown"} {
			t.Run(end, func(t *testing.T) {
				m := jailed(t, u)
				adopt(t)
				body := fmt.Sprintf("%s=held %s=%s exec %s /usr/bin/bwrap \"$@\"", roleEnv, heldDirEnv, m.dir, m.copyOfMyself())
				c := m.connect(m.policy(), "--standby=off", "--bwrap", m.fake(body))
				c.start(2, m.dir, "sh", "-c", "echo >started; echo ready; sleep 600")
				testenv.NewMarker(m.dir, "held").Wait(t)
				for range 100 { // long enough for a command that does not wait
					testenv.Pause()
				}
				if _, err := os.Stat(filepath.Join(m.dir, "started")); err == nil {
					t.Error("the command runs already")
				}
				release := func() {
					if err := os.WriteFile(filepath.Join(m.dir, "release"), nil, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				never := func() {
					r := c.collect(2)
					if r.exit == nil || r.exit.Code != 143 || !r.exit.Cancelled || !has(r.exit.Enforcement, "skip:stage2") || has(r.exit.Enforcement, "bwrap") {
						t.Errorf("got %+v %+v", r.exit, r.fail)
					}
				}
				switch end {
				case "kill":
					_ = c.cmd.Process.Kill()
					_ = c.cmd.Wait()
					release()
				case "cancel":
					c.send(2, protocol.Cancel{})
					never()
					release()
					c.sh(3, m.dir, "true")
					c.down()
				case "shutdown":
					c.send(9, protocol.Shutdown{})
					never()
					release()
					if code := c.wait(); code != 0 {
						t.Errorf("exit %d: %s", code, c.stderr)
					}
				default:
					release()
					c.waitOut(2, "ready")
					c.send(2, protocol.Cancel{})
					c.collect(2)
					c.down()
				}
				if _, err := os.Stat(filepath.Join(m.dir, "started")); (err == nil) != (end == "none") {
					t.Errorf("whether the command ran: %v", err)
				}
				if err := os.WriteFile(filepath.Join(m.dir, "done"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
				nobodyLives(t, "SIGKILL while init was held")
			})
		}
	})
}

// A helper that is killed when bubblewrap's supervisor has bound its life to it, and has
// not yet released what it cloned, leaves nothing that waits.
func TestKilledBeforeTheRelease(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		adopt(t)
		body := fmt.Sprintf("%s=held %s=1 %s=%s exec %s /usr/bin/bwrap \"$@\"", roleEnv, heldAtEnv, heldDirEnv, m.dir, m.copyOfMyself())
		c := m.connect(m.policy(), "--standby=off", "--bwrap", m.fake(body))
		c.start(2, m.dir, "true")
		testenv.NewMarker(m.dir, "held").Wait(t)
		testenv.Eventually(t, "a child that waits to be released", func() bool { // it may have to come to that yet
			return slices.ContainsFunc(testenv.Descendants(c.cmd.Process.Pid), func(p testenv.Process) bool {
				b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.PID))
				return strings.HasPrefix(string(b), fmt.Sprint(unix.SYS_READ)+" ")
			})
		})
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		if err := os.WriteFile(filepath.Join(m.dir, "done"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		nobodyLives(t, "SIGKILL before the release")
	})
}
