//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// waits says whether a process waits in recvmsg(2), as a stage 2 without a command.
func (c *conn) waits(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
	return err == nil && strings.HasPrefix(string(b), fmt.Sprint(unix.SYS_RECVMSG)+" ")
}

// waiting gives the process of the jail that waits, 0 without one.
func (c *conn) waiting() int {
	for _, p := range testenv.Descendants(c.cmd.Process.Pid) {
		if c.waits(p.PID) {
			return p.PID
		}
	}
	return 0
}

// startedAt is a process's start in clock ticks since boot, as the command tells it.
func startedAt(t *testing.T, r result) int {
	t.Helper()
	fields := strings.Fields(r.stdout[strings.LastIndexByte(r.stdout, ')')+1:])
	if len(fields) < 20 {
		t.Fatalf("got %q, %q", r.stdout, r.stderr)
	}
	n, err := strconv.Atoi(fields[19])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ready waits for a jail, and past the clock tick that it was made in; the result is
// the present one.
func (c *conn) ready() int {
	c.t.Helper()
	testenv.Eventually(c.t, "a jail that waits", func() bool { return c.waiting() != 0 })
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		c.t.Fatal(err)
	}
	at := int(now.Sec*100 + now.Nsec/1e7)
	time.Sleep(30 * time.Millisecond)
	return at
}

const tell = "exec cat /proc/self/stat"

func TestStandbyIsUsed(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.write("ws/.env", "secret\n")
		p := s.policy(s.protect("ws/.env"))
		on, off := connect(t, s.u, p, "--standby=on"), connect(t, s.u, p, "--standby=off")
		var reports [2][]string
		for n := range uint64(3) {
			at := on.ready()
			r := on.sh(2+10*n, s.ws, tell)
			// A mount that another test makes reaches the jail that waits, which is then dropped.
			for try := uint64(1); startedAt(t, r) > at && try < 5; try++ {
				at = on.ready()
				r = on.sh(2+10*n+try, s.ws, tell)
			}
			if got := startedAt(t, r); got > at {
				t.Errorf("%d: the command's process is from %d, the jail was ready at %d", n, got, at)
			}
			cold := off.sh(2+n, s.ws, tell)
			if got := startedAt(t, cold); got <= at {
				t.Errorf("%d: --standby=off has a process from %d, before %d", n, got, at)
			}
			if off.waiting() != 0 {
				t.Error("--standby=off has a jail that waits")
			}
			reports = [2][]string{r.exit.Enforcement, cold.exit.Enforcement}
		}
		if !slices.Equal(reports[0], reports[1]) {
			t.Errorf("the reports differ:\n%q\n%q", reports[0], reports[1])
		}
		s.expect(on.sh(50, s.ws, "cat .env 2>/dev/null; echo $?; pwd"), "1\n"+s.ws+"\n")
		s.end(on)
		s.end(off)
	})
}

// Whatever changes between the building and the command is as if the jail had been
// built for the command.
func TestStandbyIsThrownAwayWhenTheHostChanges(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		for name, c := range map[string]struct {
			change string
			want   string
		}{
			"nothing":               {"true", "one\nsub\nmade\n"},
			"the workspace":         {`cd ..; mv ws old; mkdir ws; echo new >ws/f`, "new\nmade\n"},
			"a masked file":         {"echo other >.new; mv .new .env", "one\nsub\nmade\n"},
			"a masked file, back":   {"mv .env .x; mv .x .env", "one\nsub\nmade\n"},
			"a directory above one": {"mv .git g; mkdir .git; mv g/hooks .git; rmdir g", "one\nsub\nmade\n"},
			"a readable root":       {"mv sub x; mkdir sub; echo new >sub/f", "one\nnew\nmade\n"},
		} {
			t.Run(name, func(t *testing.T) {
				// A rename of the file itself carries its mask along.
				kept := name == "nothing" || name == "a masked file, back"
				for try := range 5 {
					old := s.changed(t, c.change, c.want)
					if old && !kept {
						t.Error("the waiting jail was used")
					}
					if old || !kept { // else a mount that another test makes, as above
						return
					}
					t.Logf("try %d: the waiting jail was not used", try)
				}
				t.Error("the waiting jail was never used")
			})
		}
	})
}

// changed runs a command after a change of the host, and says whether the jail that
// waited meanwhile was used.
func (s *site) changed(t *testing.T, change, want string) bool {
	const show = `cat f sub/f .env .late 2>/dev/null; cat /srv/none 2>/dev/null; : >made && echo made; ` + tell
	s = newSite(t, s.u)
	s.write("ws/f", "one\n")
	s.write("ws/sub/f", "sub\n")
	s.write("ws/.env", "secret\n")
	s.mkdir("ws/.git/hooks")
	h := connect(t, s.u, s.policy(s.protect("ws/.env", "ws/.git/hooks"), func(p *protocol.Policy) {
		p.ReadableRoots = append(p.ReadableRoots, s.path("ws/sub"))
	}), "--standby=on")
	at := h.ready()
	s.onHost(change)
	r := h.sh(2, s.ws, show)
	if !strings.HasPrefix(r.stdout, want) || strings.Contains(r.stdout, "secret") || r.exit.Cancelled || mountSkips(r) != "" {
		t.Errorf("got %q, %q, %+v", r.stdout, r.stderr, r.exit)
	}
	if !s.exists("ws/made") {
		t.Error("what the command made is not in the workspace")
	}
	s.end(h)
	return startedAt(t, r) <= at
}

// A request for something else gets its own jail.
func TestStandbyIsThrownAwayForAnotherRequest(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		s.mkdir("other")
		base := s.policy()
		wide := s.policy(func(p *protocol.Policy) { p.ReadableRoots = append(p.ReadableRoots, s.path("other")) })
		h := connect(t, s.u, base, "--standby=on")
		for n, c := range []struct {
			start protocol.ExecStart
			used  bool
		}{
			{protocol.ExecStart{}, true},
			{protocol.ExecStart{Cwd: "/"}, true},
			{protocol.ExecStart{Env: map[string]string{"LANG": "C"}}, true},
			{protocol.ExecStart{Policy: wide.Append(nil)}, false},
			{protocol.ExecStart{Policy: wide.Append(nil)}, true}, // the last one's is kept
			{protocol.ExecStart{}, false},
			{protocol.ExecStart{Limits: protocol.Limits{FsizeBytes: 4096}.Append(nil)}, false},
			{protocol.ExecStart{Limits: protocol.Limits{FsizeBytes: 4096}.Append(nil)}, true},
			{protocol.ExecStart{Limits: protocol.Limits{FsizeBytes: 4096, WallSeconds: 60}.Append(nil)}, true},
		} {
			c.start.Argv, c.start.Token = []string{"sh", "-c", tell}, []byte("t")
			if c.start.Cwd == "" {
				c.start.Cwd = s.ws
			}
			used := false
			for try := range uint64(5) {
				at := h.ready()
				id := 2 + 10*uint64(n) + try
				h.send(id, c.start)
				r := h.collect(id)
				if r.exit == nil || r.exit.Code != 0 {
					t.Fatalf("%d: %+v, %+v, %q", n, r.exit, r.fail, r.stderr)
				}
				used = startedAt(t, r) <= at
				if used || !c.used { // else a mount that another test makes, as above
					break
				}
			}
			if used != c.used {
				t.Errorf("%d: the waiting jail was used: %v", n, used)
			}
		}
		s.end(h)
	})
}

// What a jail takes from its helper is the helper's as it is at the command, not as it was
// when the jail was built ahead; so is the report.
func TestStandbyIsThrownAwayWhenTheHelperChanges(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		limits := protocol.Limits{FsizeBytes: 1 << 20, CPUSeconds: 600}
		for name, c := range map[string]struct {
			change func(pid int) error
			shown  string // by the command
			entry  string // of the report
		}{
			"its limits": {func(pid int) error {
				cmd := exec.Command(testenv.Tool(s.t, "prlimit"), "--pid", strconv.Itoa(pid), "--fsize=8192:8192")
				return testenv.As(s.t, cmd, s.u).Run()
			}, "Max file size 8192 8192 bytes", "rlimit-fsize:inherited=8192"},
			"its place for the OOM killer": {func(pid int) error {
				return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("555"), 0)
			}, "adj 555", "rlimit-fsize"},
			"its cgroup": {func(pid int) error { return moveToCgroup(s.t, pid) }, "", "rlimit-fsize"},
		} {
			if name == "its cgroup" && s.u.UID != 0 {
				continue // only root moves processes
			}
			t.Run(name, func(t *testing.T) {
				h := connect(t, s.u, s.policy(func(p *protocol.Policy) { p.Limits = limits }), "--standby=on")
				at := h.ready()
				if err := c.change(h.cmd.Process.Pid); err != nil {
					t.Fatal(err)
				}
				r := h.sh(2, s.ws, `tr -s ' ' </proc/self/limits; echo adj $(cat /proc/self/oom_score_adj); `+tell)
				if startedAt(t, r) <= at || !strings.Contains(r.stdout, c.shown) || !slices.Contains(r.exit.Enforcement, c.entry) {
					t.Errorf("got %s%q", r.stdout, r.exit.Enforcement)
				}
				s.end(h)
			})
		}
	})
}

// moveToCgroup moves a process into a cgroup of any hierarchy, until the test's end.
func moveToCgroup(t *testing.T, pid int) error {
	err := os.ErrNotExist
	for _, top := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/freezer"} {
		if _, err = os.Stat(top + "/cgroup.procs"); err != nil {
			continue
		}
		dir := top + "/sandboxd-test-moved"
		if err = os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
			continue
		}
		t.Cleanup(func() {
			testenv.Eventually(t, "an empty cgroup", func() bool { err := os.Remove(dir); return err == nil || os.IsNotExist(err) })
		})
		if err = os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0); err == nil {
			return nil
		}
	}
	return err
}

// Requests without a pause take the jail that is being built, and a cancel, a refusal
// and a command that does not exist are as without it.
func TestStandbyBackToBack(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		h := connect(t, s.u, s.policy(), "--standby=on")
		for n := range uint64(40) {
			id := 2 + n
			switch n % 5 {
			case 0, 1:
				s.expect(h.sh(id, s.ws, "echo ran"), "ran\n")
			case 2:
				h.start(id, s.ws, "no-such-command")
				if r := h.collect(id); r.fail == nil || r.fail.Code != protocol.CodeSpawnFailed || !strings.Contains(r.fail.Msg, "no-such-command") {
					t.Errorf("got %+v, %+v", r.exit, r.fail)
				}
			case 3:
				h.start(id, "/nowhere", "true")
				if r := h.collect(id); r.fail == nil || r.fail.Code != protocol.CodeRefused {
					t.Errorf("got %+v, %+v", r.exit, r.fail)
				}
			case 4:
				h.start(id, s.ws, "sleep", "600")
				h.send(id, protocol.Cancel{})
				if r := h.collect(id); r.exit == nil || !r.exit.Cancelled {
					t.Errorf("got %+v, %+v", r.exit, r.fail)
				}
			}
		}
		s.end(h)
	})
}

// A jail that waits dies with its helper, whatever ends that, and leaves nothing.
func TestStandbyDiesWithTheHelper(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		before := s.tree()
		for name, end := range map[string]func(h *conn){
			"shutdown": func(h *conn) { h.send(1<<40, protocol.Shutdown{}) },
			"eof":      func(h *conn) { h.in.Close() },
			"TERM":     func(h *conn) { _ = h.cmd.Process.Signal(syscall.SIGTERM) },
			"KILL":     func(h *conn) { _ = h.cmd.Process.Kill() },
		} {
			h := connect(t, s.u, s.policy(), "--standby=on")
			h.ready()
			kids := testenv.Descendants(h.cmd.Process.Pid)
			if len(kids) < 3 {
				t.Fatalf("%s: only %+v wait", name, kids)
			}
			end(h)
			h.wait()
			for _, p := range kids {
				testenv.Eventually(t, name+": the end of the jail", func() bool {
					b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
					return err != nil || strings.Contains(string(b), ") Z ") || !strings.Contains(string(b), p.Comm)
				})
			}
		}
		s.unchanged(before)
	})
}

// A plan that needs a mount point on the host has no jail that waits: an idle helper
// leaves nothing in a workspace.
func TestStandbyLeavesNoPlaceholder(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		before := s.tree()
		h := connect(t, s.u, s.policy(s.protect("ws/.netrc")), "--standby=on")
		for n := range uint64(3) {
			s.expect(h.sh(2+n, s.ws, "mkdir .netrc/x 2>/dev/null || echo refused"), "refused\n")
			testenv.Eventually(t, "an empty workspace", func() bool { return s.tree() == before })
			time.Sleep(20 * time.Millisecond)
			if h.waiting() != 0 {
				t.Error("a jail waits")
			}
		}
		s.end(h)
	})
}

// What waits is one jail, however many commands there were.
func TestStandbySoak(t *testing.T) {
	eachSite(t, func(t *testing.T, s *site) {
		h := connect(t, s.u, s.policy(), "--standby=on")
		measure := func() (fds, kids int) {
			h.ready()
			return len(testenv.FDs(h.cmd.Process.Pid)), len(testenv.Descendants(h.cmd.Process.Pid))
		}
		id := uint64(2)
		for range 5 {
			h.sh(id, s.ws, "true")
			id++
		}
		fds, kids := measure()
		for range 20 { // what the last one held may still be given back
			testenv.Pause()
			f, k := measure()
			fds, kids = min(f, fds), min(k, kids)
		}
		for n := range scaled(5000, 60) {
			if h.sh(id, s.ws, "true"); n%3 == 0 {
				h.ready()
			}
			id++
		}
		var f, k int
		for end := time.Now().Add(testenv.Patience); time.Now().Before(end); testenv.Pause() {
			if f, k = measure(); f <= fds && k == kids {
				break
			}
		}
		if f > fds || k != kids || k != 3 {
			t.Errorf("%d descriptors and %d processes became %d and %d", fds, kids, f, k)
		}
		s.end(h)
	})
}
