//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// ceilParentEnv names a cgroup that passes memory and pids on and in which this user
// may make others. Where it is not set, the hierarchy's top is tried.
const ceilParentEnv = "SANDBOXD_TEST_CGROUP"

// ceilBase makes a fresh base. What is left in it at the end fails the test.
func ceilBase(t *testing.T) string {
	t.Helper()
	parent := os.Getenv(ceilParentEnv)
	if parent == "" {
		parent = "/sys/fs/cgroup"
	}
	var st unix.Statfs_t
	on, _ := os.ReadFile(parent + "/cgroup.subtree_control")
	if unix.Statfs(parent, &st) != nil || st.Type != unix.CGROUP2_SUPER_MAGIC ||
		!strings.Contains(string(on), "memory") || !strings.Contains(string(on), "pids") {
		testenv.Skip(t, "cgroup-ceilings", parent+" passes on no memory and pids controllers")
	}
	base, err := os.MkdirTemp(parent, "sandboxd-e2e-")
	if err != nil {
		testenv.Skip(t, "cgroup-ceilings", err.Error())
	}
	t.Cleanup(func() {
		if left := ceilGroups(t, base); len(left) != 0 {
			t.Errorf("cgroups are left: %v", left)
		}
		if err := unix.Rmdir(base); err != nil {
			t.Errorf("cannot remove the base: %v", err)
		}
	})
	return base
}

func ceilGroups(t *testing.T, base string) []string {
	t.Helper()
	found, err := filepath.Glob(base + "/exec-*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// ceil is a helper with a base of its own, run as the test's own user: the matrix runs
// these tests as root and as uid 1000.
func ceil(t *testing.T, base string, l protocol.Limits, args ...string) (*conn, string) {
	t.Helper()
	u := testenv.Me()
	u.Home = testenv.TempDir(t, u)
	dir := testenv.TempDir(t, u)
	p := basePolicy(dir)
	p.Limits = l
	return connect(t, u, p, append([]string{"--cgroup-base", base, "--allow-unenforced"}, args...)...), dir
}

// The scaffolding must never be what a small ceiling hits.
func TestCeilSmallPids(t *testing.T) {
	base := ceilBase(t)
	for pids := range uint64(8) {
		c, dir := ceil(t, base, protocol.Limits{Pids: pids + 1})
		if !has(c.hello.Features, "cgroup-v2") {
			t.Fatalf("hello: %q", c.hello.Features)
		}
		for i := range uint64(scaled(500, 2)) {
			c.start(2+i, dir, "/bin/true")
			r := c.collect(2 + i)
			if r.exit == nil || r.exit.Code != 0 || r.stderr != "" || !has(r.exit.Enforcement, "cgroup-v2:pids_allowance=2") {
				t.Fatalf("pids %d, run %d: %+v, %+v, %q", pids+1, i, r.exit, r.fail, r.stderr)
			}
		}
		c.down()
	}
	t.Logf("%d runs of /bin/true under each pids from 1 to 8", scaled(500, 2))
}

func TestCeilForkBomb(t *testing.T) {
	c, dir := ceil(t, ceilBase(t), protocol.Limits{Pids: 16})
	r := c.try(2, dir, "while :; do sleep 600 & echo started; done")
	if n := strings.Count(r.stdout, "started"); r.exit.Code == 0 || n < 10 || n > 16 || !has(r.exit.Enforcement, "cgroup-v2:pids_denied") {
		t.Errorf("%d started: %+v, %q", n, r.exit, r.stderr)
	}
	if r := c.sh(3, dir, "echo fine"); has(r.exit.Enforcement, "cgroup-v2:pids_denied") {
		t.Errorf("the next one: %q", r.exit.Enforcement)
	}
	c.down()
}

func TestCeilMemoryEater(t *testing.T) {
	c, dir := ceil(t, ceilBase(t), protocol.Limits{MemBytes: 64 << 20})
	// One line without an end: tail keeps it all.
	r := c.try(2, dir, "head -c 256M /dev/zero | tail | wc -c; echo survived")
	if r.exit.Code == 0 || strings.Contains(r.stdout, "survived") || !has(r.exit.Enforcement, "cgroup-v2:oom_kill") {
		t.Errorf("%+v, %q, %q", r.exit, r.stdout, r.stderr)
	}
	// The control: the same, within the ceiling.
	r = c.sh(3, dir, "head -c 16M /dev/zero | tail | wc -c; echo survived")
	if r.stdout != "16777216\nsurvived\n" || has(r.exit.Enforcement, "cgroup-v2:oom_kill") {
		t.Errorf("%+v, %q", r.exit, r.stdout)
	}
	c.down()
}

// What is mapped and not touched is not counted.
func TestCeilUntouchedReservation(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		testenv.Skip(t, "tool:python3", err.Error())
	}
	c, dir := ceil(t, ceilBase(t), protocol.Limits{MemBytes: 64 << 20})
	r := c.sh(2, dir, python+` -ISc 'import mmap; m = mmap.mmap(-1, 4 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000); m[0] = 1; print(len(m))'`)
	if r.stdout != "4294967296\n" || has(r.exit.Enforcement, "cgroup-v2:oom_kill") {
		t.Errorf("%q, %q, %q", r.stdout, r.stderr, r.exit.Enforcement)
	}
	c.down()
}

// Nothing of an execution is ever seen outside its cgroup, from its first moment on.
func TestCeilBornInside(t *testing.T) {
	base := ceilBase(t)
	c, dir := ceil(t, base, protocol.Limits{Pids: 50, MemBytes: 256 << 20})
	for i := range uint64(scaled(50, 3)) {
		c.start(2+i, dir, "sh", "-c", "echo ready; cat /proc/self/cgroup; read x")
		seen, done := 0, make(chan struct{})
		go func() {
			defer close(done)
			c.waitOut(2+i, "0::/\n") // the root of its cgroup namespace is where it was born
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			for _, p := range testenv.Descendants(c.cmd.Process.Pid) {
				b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.PID))
				_, own, _ := strings.Cut(strings.TrimSpace(string(b)), "0::")
				if err != nil || p.State == "Z" || own == "" {
					continue
				}
				if seen++; !strings.Contains(own, "/"+filepath.Base(base)+"/exec-") {
					t.Fatalf("%s (%d) lives in %q", p.Comm, p.PID, own)
				}
			}
		}
		if seen == 0 {
			t.Fatal("no process was seen at all")
		}
		c.send(2+i, protocol.ExecStdin{EOF: true})
		c.collect(2 + i)
	}
	c.down()
}

// A ceiling that not even stage 2 lives under is refused by name; the smallest that is
// not refused starts a command every time.
func TestCeilSmallestMemory(t *testing.T) {
	base := ceilBase(t)
	c, dir := ceil(t, base, protocol.Limits{MemBytes: 1 << 20})
	c.start(2, dir, "true")
	if r := c.collect(2); r.fail == nil || r.fail.Code != protocol.CodeRefused || !strings.Contains(r.fail.Msg, "mem_bytes") {
		t.Errorf("%+v, %+v", r.exit, r.fail)
	}
	c.down()
	c, dir = ceil(t, base, protocol.Limits{MemBytes: 8 << 20})
	for i := range uint64(scaled(500, 5)) {
		c.start(2+i, dir, "/bin/true")
		if r := c.collect(2 + i); r.exit == nil || r.exit.Code != 0 || has(r.exit.Enforcement, "cgroup-v2:oom_kill") {
			t.Fatalf("run %d: %+v, %+v", i, r.exit, r.fail)
		}
	}
	c.down()
}

// Killed helpers leave cgroups; the next start removes them and nothing of a helper
// that lives on the same base.
func TestCeilKilledHelpersAreSwept(t *testing.T) {
	base := ceilBase(t)
	limits := protocol.Limits{Pids: 50}
	live, liveDir := ceil(t, base, limits)
	live.until(2, liveDir, "sh", "-c", "echo ready; read x")
	own := ceilGroups(t, base)
	if len(own) != 1 {
		t.Fatalf("the live helper's: %v", own)
	}
	for _, name := range []string{"service", "exec-7-7-7"} {
		must(t, os.Mkdir(filepath.Join(base, name), 0o755))
		defer func() {
			if err := os.Remove(filepath.Join(base, name)); err != nil {
				t.Errorf("somebody else's cgroup: %v", err)
			}
		}()
	}
	others := 1 // of exec-*
	n := scaled(50, 3)
	var killed []*conn
	for range n {
		c, dir := ceil(t, base, limits)
		c.until(2, dir, "sh", "-c", "echo ready; sleep 600")
		killed = append(killed, c)
	}
	for _, c := range killed {
		must(t, c.cmd.Process.Kill())
		c.wait()
	}
	if left := ceilGroups(t, base); len(left) != n+1+others {
		t.Errorf("%d killed helpers left %v", n, left)
	}
	// The jails die after their helpers; then a start finds all of it empty.
	starts := 0
	testenv.Eventually(t, "an end of the killed helpers' cgroups", func() bool {
		c, _ := ceil(t, base, limits)
		c.down()
		starts++
		return len(ceilGroups(t, base)) == 1+others
	})
	t.Logf("%d helpers killed, swept by %d starts", n, starts)
	if left := ceilGroups(t, base); !slices.Contains(left, own[0]) {
		t.Fatalf("left: %v, the live helper's is %v", left, own)
	}
	live.send(2, protocol.ExecStdin{Data: []byte("x\n"), EOF: true})
	if r := live.collect(2); r.exit == nil || r.exit.Code != 0 || r.exit.Signal != 0 {
		t.Errorf("the live helper's execution: %+v, %+v", r.exit, r.fail)
	}
	live.down()
}

func TestCeilLeaveNothing(t *testing.T) {
	base := ceilBase(t)
	c, dir := ceil(t, base, protocol.Limits{Pids: 20, MemBytes: 128 << 20})
	n := uint64(scaled(2000, 6))
	for i := range n {
		c.start(2+i, dir, "sh", "-c", "setsid sleep 600 & exit 3")
		if r := c.collect(2 + i); r.exit == nil || r.exit.Code != 3 {
			t.Fatalf("run %d: %+v, %+v", i, r.exit, r.fail)
		}
		if left := ceilGroups(t, base); len(left) > 2 {
			t.Fatalf("after %d executions: %v", i, left)
		}
	}
	c.down()
	left := ceilGroups(t, base)
	if len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	t.Logf("%d executions, %d cgroups left", n, len(left))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// node reserves gigabytes at its start and touches little of them: it works under a
// ceiling that RLIMIT_AS could not have.
func TestCeilNode(t *testing.T) {
	node := testenv.Tool(t, "node")
	c, dir := ceil(t, ceilBase(t), protocol.Limits{MemBytes: 256 << 20, Pids: 64})
	r := c.sh(2, dir, node+` -e 'console.log(6 * 7)'`)
	if r.stdout != "42\n" || has(r.exit.Enforcement, "cgroup-v2:oom_kill") {
		t.Errorf("%q, %q, %q", r.stdout, r.stderr, r.exit.Enforcement)
	}
	c.down()
}
