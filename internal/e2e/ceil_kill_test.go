//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A command that forks before the helper could take stage 2's share off pids.max is
// over its ceiling: it is killed and the report says so. The helper hears of the
// command's start seconds late, to lose that race for certain.
func TestCeilQuickerThanTheHelper(t *testing.T) {
	strace := testenv.Tool(t, "strace")
	base := ceilBase(t)
	u := testenv.Me()
	u.Home = testenv.TempDir(t, u)
	m := jailed(t, u)
	p := m.policy()
	p.Limits = protocol.Limits{Pids: 2}
	start := func(late string) *sup {
		c := m.spawnCmd(exec.Command(strace, "-f", "-qq", "-o", filepath.Join(u.Home, "trace"), "-e", "signal=none", "-e", "trace=recvmsg",
			"-e", "inject=recvmsg:delay_exit="+late, testenv.Binary(t), "--cgroup-base", base, "--standby=off"), p)
		c.greet()
		return c
	}
	const script = "for i in 1 2 3 4; do sleep 600 & done; wait"
	c := start("2000000") // microseconds, longer than fd 4 may be held by a stray
	c.start(2, m.dir, "sh", "-c", script)
	r := c.collect(2)
	if r.exit == nil || r.exit.Signal != int(syscall.SIGKILL) {
		t.Errorf("%+v, %+v, %q", r.exit, r.fail, r.stderr)
	} else if all := strings.Join(r.exit.Enforcement, "\n"); !strings.Contains(all, "where pids allows 2,") || !strings.Contains(all, "; killed") {
		t.Errorf("%q", r.exit.Enforcement)
	}
	c.down()
	// The control: without the head start it is denied its forks, and no skip. One that
	// never has more than it may is left alone even so.
	plain, dir := ceil(t, base, p.Limits, "--standby=off")
	if r := plain.try(3, dir, script); r.exit == nil || has(r.exit.Enforcement, "skip:cgroup-v2") || !has(r.exit.Enforcement, "cgroup-v2:pids_denied") {
		t.Errorf("%+v, %+v", r.exit, r.fail)
	}
	plain.down()
	c = start("2000000")
	if r := c.sh(4, m.dir, "/bin/true; /bin/true"); has(r.exit.Enforcement, "skip:cgroup-v2") {
		t.Errorf("%q", r.exit.Enforcement)
	}
	c.down()
}

// Commands that fork at once, under every ceiling that stage 2 needs more than: denied
// what is over it, or killed with a word about it.
func TestCeilForksAtOnce(t *testing.T) {
	base := ceilBase(t)
	for pids := uint64(1); pids <= 5; pids++ {
		c, dir := ceil(t, base, protocol.Limits{Pids: pids})
		killed := 0
		for i := range uint64(scaled(100, 1)) {
			r := c.try(2+i, dir, "for i in 1 2 3 4 5 6 7 8; do sleep 600 & echo started; done")
			if has(r.exit.Enforcement, "skip:cgroup-v2: the command had") && r.exit.Signal == int(syscall.SIGKILL) {
				killed++
				continue
			}
			if n := strings.Count(r.stdout, "started"); n > int(pids)-1 || has(r.exit.Enforcement, "skip:cgroup-v2") || !has(r.exit.Enforcement, "cgroup-v2:pids_denied") {
				t.Fatalf("pids %d: %d started: %+v, %q", pids, n, r.exit, r.stderr)
			}
		}
		t.Logf("pids %d: %d of %d were quicker than the helper", pids, killed, scaled(100, 1))
		c.down()
	}
}

// A counter that cannot be read is told as such, and not as a zero.
func TestCeilUnreadableCounters(t *testing.T) {
	if os.Getuid() == 0 {
		testenv.Skip(t, "not-root", "root reads every file")
	}
	base := ceilBase(t)
	c, dir := ceil(t, base, protocol.Limits{Pids: 20, MemBytes: 64 << 20})
	for i, file := range []string{"pids.events", "memory.events"} {
		id := uint64(2 + i)
		c.until(id, dir, "sh", "-c", "echo ready; read x")
		groups := ceilGroups(t, base)
		path := filepath.Join(groups[len(groups)-1], file)
		must(t, os.Chmod(path, 0))
		c.send(id, protocol.ExecStdin{EOF: true})
		r := c.collect(id)
		if r.exit == nil || !has(r.exit.Enforcement, "skip:cgroup-v2: cannot read what the ceiling did") || !strings.Contains(strings.Join(r.exit.Enforcement, "\n"), file) {
			t.Errorf("%+v, %+v", r.exit, r.fail)
		}
	}
	if r := c.sh(9, dir, "true"); has(r.exit.Enforcement, "skip:cgroup-v2") {
		t.Errorf("the next one: %q", r.exit.Enforcement)
	}
	c.down()
}

// What a cancelled command leaves, whoever it called itself, is in its cgroup and goes
// with it.
func TestCeilCancelTakesAll(t *testing.T) {
	base := ceilBase(t)
	c, dir := ceil(t, base, protocol.Limits{Pids: 40})
	tag := uniqueSleep()
	c.until(2, dir, "sh", "-c", `trap '' TERM; for i in 1 2 3; do (setsid sh -c "trap '' TERM; echo >$i; sleep `+tag+`; true" &); done
		until [ -e 1 ] && [ -e 2 ] && [ -e 3 ]; do :; done; echo ready; sleep `+tag+"; true")
	testenv.Eventually(t, "four sleeps", func() bool { return len(tagged("sleep\x00"+tag)) == 4 })
	c.send(2, protocol.Cancel{})
	if r := c.collect(2); r.exit == nil || !r.exit.Cancelled {
		t.Errorf("%+v, %+v", r.exit, r.fail)
	}
	if left := tagged(tag); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	c.down()
}

// Where the kernel refuses the birth inside, or the cgroup's set-up fails, there is no
// late entry: the command runs without ceilings and the report says so with the errno.
// Under --require-enforced it does not run.
func TestCeilCannotBeBornInside(t *testing.T) {
	if os.Getuid() == 0 {
		testenv.Skip(t, "not-root", "root moves every process")
	}
	base := ceilBase(t)
	limits := protocol.Limits{Pids: 20}
	// A jail that is built ahead has its ceilings already.
	c, dir := ceil(t, base, limits, "--standby=off")
	strict, strictDir := ceil(t, base, limits, "--standby=off", "--require-enforced")
	// A process enters the base, which then cannot have children with controllers.
	resident := exec.Command("/bin/sleep", "600")
	must(t, resident.Start())
	defer resident.Wait()
	defer resident.Process.Kill()
	procs := filepath.Join(base, "cgroup.procs")
	must(t, os.WriteFile(procs, []byte(uintText(uint64(resident.Process.Pid))), 0))
	skipsCeilings(c, 2, dir, "cannot enable the controllers memory and pids")
	refusesCeilings(strict, 2, strictDir)
	must(t, resident.Process.Kill())
	_ = resident.Wait()
	if r := c.sh(3, dir, "true"); has(r.exit.Enforcement, "skip:cgroup-v2") {
		t.Errorf("once the base is empty: %q", r.exit.Enforcement)
	}
	// cgroup.procs of the common ancestor is what a migration, and a birth, must write.
	common := filepath.Join(filepath.Dir(base), "cgroup.procs")
	must(t, os.Chmod(common, 0o444))
	defer os.Chmod(common, 0o644)
	skipsCeilings(c, 4, dir, "cannot start a process in the cgroup: fork/exec /usr/bin/bwrap: permission denied")
	refusesCeilings(strict, 4, strictDir)
	must(t, os.Chmod(common, 0o644))
	if r := c.sh(5, dir, "true"); has(r.exit.Enforcement, "skip:cgroup-v2") {
		t.Errorf("with the right to move processes: %q", r.exit.Enforcement)
	}
	c.down()
	strict.down()

	// A jail that is built ahead, and was refused its birth, is not used for an execution
	// that can have its ceilings.
	c, dir = ceil(t, base, limits, "--standby=on")
	must(t, os.Chmod(common, 0o444))
	c.sh(2, dir, "true") // by a jail from before
	testenv.Eventually(t, "a jail built ahead outside", func() bool {
		return len(bornOutside(c, base)) > 1
	})
	must(t, os.Chmod(common, 0o644))
	c.until(3, dir, "sh", "-c", "echo ready; read x")
	if outside := bornOutside(c, base); len(outside) > 0 {
		t.Errorf("outside: %+v", outside)
	}
	c.send(3, protocol.ExecStdin{Data: []byte("x\n"), EOF: true})
	if r := c.collect(3); r.exit == nil || has(r.exit.Enforcement, "skip:cgroup-v2") || !has(r.exit.Enforcement, "cgroup-v2") {
		t.Errorf("%+v, %+v", r.exit, r.fail)
	}
	c.down()
}

// bornOutside lists the helper's processes that live in no cgroup of the base.
func bornOutside(c *conn, base string) (found []testenv.Process) {
	for _, p := range testenv.Descendants(c.cmd.Process.Pid) {
		b, err := os.ReadFile("/proc/" + uintText(uint64(p.PID)) + "/cgroup")
		if err == nil && p.State != "Z" && !strings.Contains(string(b), "/"+filepath.Base(base)+"/exec-") {
			found = append(found, p)
		}
	}
	return found
}

func skipsCeilings(c *conn, id uint64, dir, reason string) {
	c.t.Helper()
	r := c.sh(id, dir, "true")
	if all := strings.Join(r.exit.Enforcement, "\n"); !strings.Contains(all, "skip:cgroup-v2: "+reason) || !strings.Contains(all, "; pids.max not applied") {
		c.t.Errorf("got %q", r.exit.Enforcement)
	}
}

func refusesCeilings(c *conn, id uint64, dir string) {
	c.t.Helper()
	file := filepath.Join(dir, "strict-"+uintText(id))
	c.start(id, dir, "sh", "-c", "echo >"+file)
	r := c.collect(id)
	if _, err := os.Stat(file); err == nil || r.fail == nil {
		c.t.Errorf("got %+v, %+v, the file: %v", r.exit, r.fail, err)
	}
}
