//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A caller that waits for the end before it starts the next is never told busy.
func TestNeverBusy(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		c := m.connect(m.policy())
		for i := range uint64(scaled(5000, 60)) {
			// The next start stands in the pipe while the exit is being written.
			c.start(2+i, m.dir, "sh", "-c", "setsid sleep 600 & exit 6")
			if r := c.collect(2 + i); r.exit == nil || r.exit.Code != 6 {
				t.Fatalf("%d: got %+v %+v", i, r.exit, r.fail)
			}
		}
		id := uint64(100000)
		c.until(id, m.dir, "sh", "-c", "echo ready; exec sleep 600")
		c.start(id+1, m.dir, "true")
		if f := c.next(); f.ID != id+1 || f.Body.(protocol.ErrorBody).Code != protocol.CodeBusy {
			t.Errorf("got %+v", f)
		}
		c.send(id, protocol.Cancel{})
		c.collect(id)
		c.down()
	})
}

// settled is the footprint once the last release, which follows its exit frame, is
// through: the smallest of many.
func (c *sup) settled() footprint {
	f := c.footprint()
	for range 20 {
		testenv.Pause()
		if now := c.footprint(); now.fds+now.children <= f.fds+f.children {
			f = now
		}
	}
	return f
}

// back is the footprint once it is that of before again, or when that has not come about.
func (c *sup) back(before footprint) footprint {
	for end := time.Now().Add(testenv.Patience); ; testenv.Pause() {
		f := c.footprint()
		if f.fds <= before.fds && f.children == 0 || time.Now().After(end) {
			return f
		}
	}
}

// footprint is what a helper holds.
type footprint struct {
	fds, threads, children int
	mounts, cgroups        int // of its executions; others' come and go on a shared machine
	rss                    int // KiB
}

func (c *sup) footprint() footprint {
	pid := c.cmd.Process.Pid
	f := footprint{fds: len(testenv.FDs(pid)), threads: c.memory("Threads"), children: len(testenv.Descendants(pid)), rss: c.memory("VmRSS")}
	if c.dir != "" {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
		f.mounts = strings.Count(string(b), c.dir)
	}
	if c.base != "" {
		groups, _ := filepath.Glob(c.base + "/exec-*")
		f.cgroups = len(groups)
	}
	return f
}

// soakBase is a cgroup base for root, where this machine has one to give; "" else.
func soakBase(t *testing.T, m mode) string {
	parent := os.Getenv(ceilParentEnv)
	if parent == "" {
		parent = "/sys/fs/cgroup"
	}
	on, _ := os.ReadFile(parent + "/cgroup.subtree_control")
	if m.u.UID != 0 || !strings.Contains(string(on), "memory") || !strings.Contains(string(on), "pids") {
		return ""
	}
	return ceilBase(t)
}

// mix runs one execution of the i-th kind.
func (c *sup) mix(t *testing.T, m mode, i int) {
	id := uint64(2 + i)
	want := func(ok bool, r result) {
		if !ok {
			t.Fatalf("%d: got %+v %+v", i, r.exit, r.fail)
		}
	}
	switch i % 10 {
	case 0:
		r := c.sh(id, m.dir, "echo hi")
		want(r.stdout == "hi\n", r)
	case 1:
		r := c.try(id, m.dir, "exit 1")
		want(r.exit.Code == 1, r)
	case 2:
		c.until(id, m.dir, "sh", "-c", "echo ready; exec sleep 600")
		c.send(id, protocol.Cancel{})
		r := c.collect(id)
		want(r.exit != nil && r.exit.Cancelled, r)
	case 3:
		r := c.sh(id, m.dir, "head -c 300000 /dev/zero")
		want(len(r.stdout) == 300000, r)
	case 4:
		r := c.sh(id, m.dir, "setsid sleep 600 & (sleep 600 &) ; exit 0")
		want(true, r)
	case 5:
		c.start(id, "/nowhere", "true")
		r := c.collect(id)
		want(r.fail != nil && r.fail.Code == protocol.CodeRefused, r)
	case 6:
		c.start(id, m.dir, "no-such-command")
		r := c.collect(id)
		want(r.fail != nil && r.fail.Code == protocol.CodeSpawnFailed, r)
	case 7:
		c.start(id, m.dir, "cat")
		c.send(id, protocol.ExecStdin{Data: make([]byte, 100000)})
		c.send(id, protocol.ExecStdin{EOF: true})
		r := c.collect(id)
		want(len(r.stdout) == 100000, r)
	case 8:
		r := c.sh(id, m.dir, "setsid cat /dev/zero & setsid cat /dev/zero >&2 & echo hi; exit 0")
		want(true, r)
	case 9:
		r := c.try(id, m.dir, "kill -KILL $$")
		want(r.exit.Code == 137 && !r.exit.Cancelled, r)
	}
}

// Executions of every kind leave the helper as it was, and nothing to a pid 1 that
// does not reap.
func TestSoak(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		adopt(t)
		p, base := m.masked(), soakBase(t, m)
		args := []string{"--standby=off"} // its jail comes and goes: TestStandbySoak
		if base != "" {
			args = append(args, "--cgroup-base", base)
			p.Limits.Pids, p.Limits.MemBytes = 64, 256<<20
		}
		c := m.connect(p, args...)
		c.dir, c.base = m.dir, base
		warm, n := 40, scaled(20000, 160)
		for i := range warm {
			c.mix(t, m, i)
		}
		before := c.settled()
		for i := range n {
			c.mix(t, m, warm+i)
		}
		after := c.back(before)
		t.Logf("%+v -> %+v", before, after)
		if after.fds > before.fds || after.children > 0 || after.mounts > 0 || after.cgroups > 0 {
			t.Errorf("%+v became %+v", before, after)
		}
		if after.threads > before.threads+8 || after.rss > before.rss+20<<10 {
			t.Errorf("%+v became %+v", before, after)
		}
		alive, zombies := orphans()
		alive = slices.DeleteFunc(alive, func(p testenv.Process) bool { return testenv.IsLeash(p.PID) })
		if len(alive) != 1 || len(zombies) > 0 { // the helper
			t.Errorf("left: %+v %+v", alive, zombies)
		}
		if left, err := os.ReadDir(m.dir); err != nil || len(left) > 0 {
			t.Errorf("left in the workspace: %v %v", left, err)
		}
		// Its goroutines, as the runtime tells them on SIGQUIT.
		_ = c.cmd.Process.Signal(syscall.SIGQUIT)
		c.wait()
		dump := c.stderr.String()
		g := strings.Count(dump, "\ngoroutine ") - strings.Count(dump, "[GC worker") - strings.Count(dump, "gp=0x0")
		t.Logf("%d goroutines at the end", g)
		if g <= 0 || g > 16 {
			t.Error("too many goroutines")
		}
		nobodyLives(t, "SIGQUIT")
	})
}
