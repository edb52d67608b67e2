//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// limit sets a resource limit of the running helper. The hard limit stays, so that
// it can be lifted again.
func (c *sup) limit(which int, soft uint64) unix.Rlimit {
	c.t.Helper()
	var old unix.Rlimit // the helper's was inherited from here
	if err := unix.Getrlimit(which, &old); err != nil {
		c.t.Fatal(err)
	}
	name := map[int]string{unix.RLIMIT_NOFILE: "nofile", unix.RLIMIT_NPROC: "nproc"}[which]
	value := fmt.Sprint(soft)
	if soft == unix.RLIM_INFINITY {
		value = "unlimited"
	}
	cmd := exec.Command(testenv.Tool(c.t, "prlimit"), "--pid", fmt.Sprint(c.cmd.Process.Pid), "--"+name+"="+value+":")
	if out, err := testenv.As(c.t, cmd, c.user).CombinedOutput(); err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
	return old
}

// A helper without descriptors says so under one code, leaks nothing, leaves nothing,
// and goes on. What succeeds was enforced as it always is.
func TestOutOfDescriptors(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		p := m.policy()
		if !m.degraded() {
			for _, name := range []string{".vscode", "deep/er/file", ".git", ".env"} {
				p.Protected = append(p.Protected, filepath.Join(m.dir, name)) // placeholders
			}
		}
		c := m.connect(p)
		usual := c.sh(2, m.dir, "exit 0").exit.Enforcement
		before := c.settled()
		id := uint64(3)
		worked, failed := 0, 0
		for n := uint64(before.fds - 4); n < 250; n += 1 + n/100 {
			old := c.limit(unix.RLIMIT_NOFILE, n)
			id++
			c.start(id, m.dir, "sh", "-c", "exit 5")
			r := c.collect(id)
			c.limit(unix.RLIMIT_NOFILE, old.Cur)
			if r.exit != nil && !slices.Equal(r.exit.Enforcement, usual) {
				// The host may be another one by now. A helper that never lacked anything says so:
				// this one might have kept what it saw in a shortage.
				fresh := m.connect(p)
				usual = fresh.sh(2, m.dir, "exit 0").exit.Enforcement
				fresh.down()
			}
			switch {
			case r.exit != nil && r.exit.Code == 5 && slices.Equal(r.exit.Enforcement, usual):
				worked++
			case r.fail != nil && r.fail.Code == protocol.CodeSpawnFailed && strings.Contains(r.fail.Msg, "too many open files"):
				failed++
			default:
				t.Errorf("at %d: got %+v %+v, usually %v", n, r.exit, r.fail, usual)
			}
		}
		t.Logf("%d worked, %d failed", worked, failed)
		if worked == 0 || failed == 0 {
			t.Error("the range of limits proves nothing")
		}
		c.sh(2, m.dir, "true")
		if after := c.back(before); after.fds > before.fds || after.children > 0 {
			t.Errorf("%+v became %+v", before, after)
		}
		c.down()
		if left, err := os.ReadDir(m.dir); err != nil || len(left) > 0 {
			t.Errorf("left in the workspace: %v %v", left, err)
		}
	})
}

// A helper that cannot fork names the error and goes on. Root has no such limit.
func TestCannotFork(t *testing.T) {
	u := testenv.Ordinary(t)
	for _, name := range []string{"bwrap", "degraded"} {
		t.Run(name, func(t *testing.T) {
			m := mode{name, t, u, testenv.TempDir(t, u)}
			c := m.connect(m.policy(), "--standby=off") // which would need no fork
			c.sh(2, m.dir, "true")
			before := c.settled()
			old := c.limit(unix.RLIMIT_NPROC, 1)
			c.start(3, m.dir, "true")
			if r := c.collect(3); r.fail == nil || r.fail.Code != protocol.CodeSpawnFailed || !strings.Contains(r.fail.Msg, "resource temporarily unavailable") {
				t.Errorf("got %+v %+v", r.exit, r.fail)
			}
			c.limit(unix.RLIMIT_NPROC, old.Cur)
			c.sh(4, m.dir, "true")
			if after := c.back(before); after.fds > before.fds || after.children > 0 {
				t.Errorf("%+v became %+v", before, after)
			}
			c.down()
		})
	}
}

// fake writes a bubblewrap that is the real one for the probe and does as body says
// for an execution.
func (m mode) fake(body string) string {
	path := filepath.Join(m.u.Home, fmt.Sprintf("bwrap%d", len(body)))
	writeMode(m.t, path, "#!/bin/sh\ncase $1 in --args) ;; *) exec /usr/bin/bwrap \"$@\";; esac\n"+body+"\n", 0o755)
	return path
}

// realArgs executes the real bubblewrap around another stage 2.
const realArgs = `exec /usr/bin/bwrap --args "$2" -- `

// A bubblewrap or a stage 2 that misbehaves is spawn_failed with a reason, or ends by
// the ladder; nothing of it remains and the helper goes on.
func TestMisbehavingScaffolding(t *testing.T) {
	py := testenv.Tool(t, "python3")
	tag := uniqueSleep()
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, tc := range []struct{ name, body, msg string }{
			{"hangs", `exec sleep ` + tag, ""},
			{"hangs in another session", `exec setsid sleep ` + tag, ""},
			{"ignores TERM", `trap '' TERM; sleep ` + tag + ` & while :; do sleep 0.05; done`, ""},
			{"fails with words", `printf 'bwrap: \033[1mno luck\n' >&2; exit 1`, "no luck"},
			{"fails silently", `exit 3`, "exit status 3"},
			{"is killed", `kill -SEGV $$`, "segmentation fault"},
			{"succeeds without a report", `exit 0`, "exit status 0"},
			{"leaves a daemon that holds everything", `setsid sleep ` + tag + ` & exit 1`, "ended before"},
			{"leaves a daemon without descriptors", `setsid sleep ` + tag + ` >&- 2>&- 3>&- 4>&- 5>&- 6>&- 7>&- & exit 1`, "ended before"},
			{"stage 2 hangs", realArgs + `/bin/sh -c 'sleep ` + tag + `'`, ""},
			{"stage 2 stops", realArgs + `/bin/sh -c 'kill -STOP $$; sleep ` + tag + `'`, ""},
			{"stage 2 ends without a report", realArgs + `/bin/sh -c 'sleep ` + tag + ` & exit 0'`, "ended before"},
			{"stage 2 is killed", realArgs + `/bin/sh -c 'kill -KILL $$'`, "ended before"},
			{"stage 2 says junk", realArgs + py + ` -c 'import socket
s=socket.socket(fileno=4); s.send(b"junk")'`, "report"},
			{"stage 2 says much", realArgs + py + ` -c 'import socket,time
s=socket.socket(fileno=4)
for i in range(100): s.send(b"\x80"*100000)
time.sleep(600)'`, "report"},
			{"stage 2 hands descriptors over", realArgs + py + ` -c 'import socket,array
s=socket.socket(fileno=4); s.sendmsg([b"\x80"],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array("i",[0]*20))])'`, "report"},
			{"stage 2 lets a command of its own go on", realArgs + `/bin/sh -c 'exec 4>&-; sleep ` + tag + `'`, "ended before"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				m := jailed(t, u)
				// A jail that is built ahead would be one of these as well.
				c := m.connect(m.policy(), "--bwrap", m.fake(tc.body), "--standby=off")
				before := c.settled()
				for id := uint64(2); id < 3 || id < 4 && tc.msg != ""; id++ {
					c.start(id, m.dir, "true")
					if tc.msg == "" {
						testenv.Eventually(t, "the scaffolding", func() bool { return len(testenv.Descendants(c.cmd.Process.Pid)) > 0 })
						c.send(id, protocol.Cancel{})
					}
					r := c.collect(id)
					switch {
					case tc.msg == "" && (r.exit == nil || !r.exit.Cancelled || r.exit.Code != 143):
						t.Errorf("got %+v %+v", r.exit, r.fail)
					case tc.msg != "" && (r.fail == nil || r.fail.Code != protocol.CodeSpawnFailed || !strings.Contains(r.fail.Msg, tc.msg)):
						t.Errorf("got %+v %+v", r.exit, r.fail)
					case r.fail != nil && strings.ContainsAny(r.fail.Msg, "\x1b\n"):
						t.Errorf("control characters: %q", r.fail.Msg)
					case r.exit != nil && (has(r.exit.Enforcement, "bwrap") || has(r.exit.Enforcement, "mounts")):
						t.Errorf("claims %q", r.exit.Enforcement)
					}
				}
				if after := c.back(before); after.fds > before.fds || after.children > 0 {
					t.Errorf("%+v became %+v", before, after)
				}
				c.down()
				if left := tagged(tag); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	})
}

// A helper that cannot write a frame says so and exits with a failure.
func TestFullDiskUnderStdout(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(basePolicy(testenv.TempDir(t, testenv.Me())).Append(nil))
	w.Close()
	defer r.Close()
	var said strings.Builder
	cmd := exec.Command(testenv.Binary(t))
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr = []*os.File{r}, full, &said
	in, err := cmd.StdinPipe() // stays open: only the write can end it
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	err = cmd.Run()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "cannot write") || !strings.Contains(said.String(), "no space left") {
		t.Errorf("got %v %q", err, said.String())
	}
}

// A broker that takes nothing any more cannot hold the end up for ever: the helper
// gives up with a failure, and has cleaned up all the same.
func TestBrokerThatNeverReads(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		adopt(t)
		c := m.connect(m.masked())
		c.start(2, m.dir, "sh", "-c", "sleep 600 & cat /dev/zero")
		// Full is a pipe (the helper has widened it) into which no more goes.
		fd := int(c.stdout.(*os.File).Fd())
		held, still := 0, 0
		testenv.Eventually(t, "a full pipe", func() bool {
			size, err1 := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
			n, err2 := unix.IoctlGetInt(fd, unix.TIOCINQ)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			if still++; n != held || n < size-size/4 {
				held, still = n, 0
			}
			return still == 40
		})
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		err := c.cmd.Wait()
		if c.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(c.stderr.String(), "the broker does not read") {
			t.Errorf("got %v %q", err, c.stderr)
		}
		allGone(t, m.dir)
	})
}

// What cannot be taken away again makes the end a failure that names it.
func TestPlaceholderThatStays(t *testing.T) {
	u := testenv.Ordinary(t) // root could always remove it
	m := jailed(t, u)
	c := m.connect(m.masked())
	c.until(2, m.dir, "sh", "-c", "echo ready; read x")
	if err := os.Chmod(m.dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Chmod(m.dir, 0o755)
		_ = os.Remove(filepath.Join(m.dir, ".vscode"))
	})
	c.send(2, protocol.ExecStdin{EOF: true})
	if r := c.collect(2); r.exit == nil || r.exit.Code != 1 || r.exit.Cancelled {
		t.Errorf("got %+v %+v", r.exit, r.fail)
	}
	c.send(9, protocol.Shutdown{})
	if code := c.wait(); code != 1 || !strings.Contains(c.stderr.String(), "cannot remove") || !strings.Contains(c.stderr.String(), ".vscode") {
		t.Errorf("exit %d: %q", code, c.stderr)
	}
}
