//go:build linux

package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// soakEnv=1 makes the long runs long (make soak). Without it each runs its small
// version; nothing is skipped for lack of a feature, so testenv.Skip is not asked.
const soakEnv = "SANDBOXD_SOAK"

// scaled is the number for the soak or for an ordinary run.
func scaled(soak, ordinary int) int {
	if os.Getenv(soakEnv) == "1" {
		return soak
	}
	return ordinary
}

// roleEnv makes this test binary a wrapper that prepares its process and then
// executes its arguments.
const roleEnv = "SANDBOXD_E2E_ROLE"

func init() {
	role := os.Getenv(roleEnv)
	if role == "" {
		return
	}
	os.Unsetenv(roleEnv)
	switch role {
	case "held":
		if err := held(); err != nil {
			fmt.Fprintln(os.Stderr, "cannot listen:", err)
			os.Exit(126)
		}
	case "holder":
		if err := hold(); err != nil {
			os.Exit(126)
		}
		os.Exit(0)
	case "filtered":
		filter(
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jf: 3},
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // the flags
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_NEWUSER, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	case "oldkernel":
		filter(
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_IOCTL, Jf: 4},
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 24}, // the request
			unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xffff},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.PIDFD_GET_INFO & 0xffff, Jf: 5},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOTTY)},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SETSOCKOPT, Jf: 3},
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 32}, // the option
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SO_PASSPIDFD, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOPROTOOPT)},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	case "nolandlock":
		filter(
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 2},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: unix.SYS_LANDLOCK_RESTRICT_SELF, Jt: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	}
	err := syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	fmt.Fprintln(os.Stderr, "cannot execute:", err)
	os.Exit(127)
}

// filter installs a seccomp filter. One that denies user namespaces tells the probe that
// a refused one is the doing of whoever started this process; one that denies
// Landlock's calls is a kernel without Landlock.
func filter(program ...unix.SockFilter) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); e != 0 {
		fmt.Fprintln(os.Stderr, "cannot install a filter:", e)
		os.Exit(126)
	}
}

// sup is a broker that can also go away by halves.
type sup struct {
	*conn
	stdout    io.ReadCloser
	dir, base string // workspace and cgroup base, for its footprint
}

// hangUp is what the helper sees when its broker dies.
func (c *sup) hangUp() {
	c.in.Close()
	c.stdout.Close()
}

// mode is bubblewrap, degraded, or bubblewrap on a kernel whose pidfds neither come over
// sockets (before 6.5) nor tell how a process ended (before 6.15).
type mode struct {
	name string
	t    *testing.T
	u    testenv.User
	dir  string
}

func (m mode) degraded() bool { return m.name == "degraded" }

// eachMode runs f as root and as an ordinary user, with bubblewrap and without.
func eachMode(t *testing.T, f func(t *testing.T, m mode)) {
	t.Helper()
	modes(t, f, "bwrap", "degraded")
}

// everyMode is for what depends on how a kernel tells of a process's end.
func everyMode(t *testing.T, f func(t *testing.T, m mode)) {
	t.Helper()
	modes(t, f, "bwrap", "degraded", "old")
}

func modes(t *testing.T, f func(t *testing.T, m mode), names ...string) {
	t.Helper()
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, name := range names {
			t.Run(name, func(t *testing.T) { f(t, mode{name, t, u, testenv.TempDir(t, u)}) })
		}
	})
}

// jailed is the mode with bubblewrap, for a test that is about that only.
func jailed(t *testing.T, u testenv.User) mode { return mode{"bwrap", t, u, testenv.TempDir(t, u)} }

// policy is the workspace policy of the mode's directory.
func (m mode) policy() protocol.Policy { return basePolicy(m.dir) }

// command is the helper's command line in this mode. Degraded is a bubblewrap that
// fails as it does where a container's filter denies namespaces: anything less is
// no established absence.
func (m mode) command(args ...string) *exec.Cmd {
	m.t.Helper()
	if m.name == "old" {
		return m.as("oldkernel", append(standby(m.u), args...)...)
	}
	if !m.degraded() {
		return exec.Command(testenv.Binary(m.t), append(standby(m.u), args...)...)
	}
	fake := filepath.Join(m.u.Home, "bwrap")
	writeMode(m.t, fake, "#!/bin/sh\ncase $1 in --help|--version) exec /usr/bin/bwrap $1;; esac\n"+
		"echo 'bwrap: No permissions to create new namespace' >&2\nexit 1\n", 0o755)
	return m.as("filtered", append([]string{"--bwrap", fake, "--allow-unenforced"}, args...)...)
}

// as is a helper's command line behind one of the roles of this binary. By
// /proc/self/exe, because an ordinary user cannot reach where go test builds.
func (m mode) as(role string, args ...string) *exec.Cmd {
	args = append([]string{"/proc/self/exe", testenv.Binary(m.t)}, args...)
	return &exec.Cmd{Path: args[0], Args: args, Env: append(os.Environ(), roleEnv+"="+role)}
}

// connect starts and greets a helper in this mode.
func (m mode) connect(p protocol.Policy, args ...string) *sup {
	m.t.Helper()
	return m.connectCmd(m.command(args...), p)
}

func (m mode) connectCmd(cmd *exec.Cmd, p protocol.Policy) *sup {
	m.t.Helper()
	c := m.spawnCmd(cmd, p)
	c.greet()
	if got := has(c.hello.Features, "degraded"); got != m.degraded() {
		m.t.Fatalf("degraded is %v: %q, stderr %s", got, c.hello.Features, c.stderr)
	}
	return c
}

func (m mode) spawnCmd(cmd *exec.Cmd, p protocol.Policy) *sup {
	m.t.Helper()
	testenv.As(m.t, cmd, m.u)
	r, w, err := os.Pipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := w.Write(p.Append(nil)); err != nil {
		m.t.Fatal(err)
	}
	w.Close()
	cmd.ExtraFiles = []*os.File{r}
	c := &sup{conn: &conn{t: m.t, cmd: cmd, stderr: &syncBuffer{}, user: m.u}}
	cmd.Stderr = c.stderr
	if c.in, err = cmd.StdinPipe(); err != nil {
		m.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	c.stdout = out
	c.out = protocol.NewReader(out)
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	r.Close()
	m.t.Cleanup(func() {
		c.in.Close()
		done := time.AfterFunc(testenv.Patience, func() { cmd.Process.Kill() })
		defer done.Stop()
		if cmd.ProcessState == nil {
			_, _ = io.Copy(io.Discard, out)
			_ = cmd.Wait()
		}
		if m.t.Failed() && c.stderr.String() != "" {
			m.t.Logf("helper's stderr: %s", c.stderr)
		}
	})
	return c
}

// until starts argv under id and waits for its "ready".
func (c *conn) until(id uint64, dir string, argv ...string) {
	c.t.Helper()
	c.start(id, dir, argv...)
	c.waitOut(id, "ready")
}

// down ends the helper in an orderly way and wants nothing of it to remain.
func (c *conn) down() {
	c.t.Helper()
	c.send(1<<40, protocol.Shutdown{})
	if code := c.wait(); code != 0 {
		c.t.Errorf("exit %d after shutdown: %s", code, c.stderr)
	}
}

// tagged lists the processes whose command line holds tag, zombies not (they have
// none). A tag is an argument that no other process has.
func tagged(tag string) []int {
	var found []int
	for pid := range testenv.Processes() {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(b), tag) {
			found = append(found, pid)
		}
	}
	return found
}

// uniqueSleep is a duration for sleep(1) that no other process uses.
func uniqueSleep() string { return fmt.Sprintf("600.%09d", time.Now().UnixNano()%1e9) }
