package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/cgroups/v3/cgroup2/stats"
)

func stat(t *testing.T, path string) *stats.Metrics {
	t.Helper()
	m, err := witness(t, path).Stat()
	must(t, err)
	return m
}

// What was set, read by another implementation.
func TestCeilingsAsTheWitnessReadsThem(t *testing.T) {
	b := fullBase(t)
	g := create(t, b, 1, protocolLimits(64<<20, 4))
	m := stat(t, g.Path())
	if m.Memory.UsageLimit != 64<<20 || m.Pids.Limit != 8 || g.Allowance() != 4 {
		t.Errorf("memory %d, pids %d, allowance %d", m.Memory.UsageLimit, m.Pids.Limit, g.Allowance())
	}
	for file, want := range map[string]string{"memory.oom.group": "1\n", "memory.swap.max": "0\n"} {
		if got, err := os.ReadFile(g.Path() + "/" + file); !(err == nil && string(got) == want) && !os.IsNotExist(err) {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	must(t, g.LowerTo(Scaffold))
	if m := stat(t, g.Path()); m.Pids.Limit != 6 || g.Allowance() != Scaffold {
		t.Errorf("lowered: pids %d, allowance %d", m.Pids.Limit, g.Allowance())
	}
	must(t, g.LowerTo(0))
	if m := stat(t, g.Path()); m.Pids.Limit != 4 || g.Allowance() != 0 {
		t.Errorf("lowered to nothing: pids %d, allowance %d", m.Pids.Limit, g.Allowance())
	}
	must(t, g.Remove(0))
}

// A command that used stage 2's share before that was taken away is found, one within
// its ceiling is not.
func TestQuickerThanTheLowering(t *testing.T) {
	b := fullBase(t)
	for pids, over := range map[uint64]bool{1: true, 3: true, 4: false, 5: false} {
		g := create(t, b, 1, protocolLimits(0, pids))
		cmd := role(g, "wait")
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "for i in 1 2 3 4 5; do sleep 600 & done; echo ready; read x"}
		startReady(t, cmd) // six tasks, as many as four and bubblewrap's two
		err := g.LowerTo(Scaffold)
		var exceeded *ExceededError
		if errors.As(err, &exceeded) != over || !over && err != nil {
			t.Errorf("pids %d: %v", pids, err)
		}
		if over && (exceeded.Tasks != 4 || exceeded.Pids != pids) {
			t.Errorf("pids %d: %v", pids, err)
		}
		must(t, g.Kill())
		must(t, g.Remove(20*time.Second))
	}
}

// Only what was asked for is set.
func TestOneCeilingLeavesTheOtherOpen(t *testing.T) {
	b := fullBase(t)
	for file, l := range map[string][2]uint64{"pids.max": {64 << 20, 0}, "memory.max": {0, 16}} {
		g := create(t, b, 1, protocolLimits(l[0], l[1]))
		if got, err := os.ReadFile(g.Path() + "/" + file); err != nil || string(got) != "max\n" {
			t.Errorf("%s: %q, %v", file, got, err)
		}
		must(t, g.Remove(0))
	}
}

func TestForkBombIsStopped(t *testing.T) {
	b := fullBase(t)
	g := create(t, b, 1, protocolLimits(0, 16))
	must(t, g.LowerTo(0))
	bomb := role(g, "wait")
	bomb.Path, bomb.Args = "/bin/sh", []string{"sh", "-c", "while :; do sleep 1000 & done"}
	said, err := os.Create(filepath.Join(t.TempDir(), "said")) // no pipe: what it started would hold that open
	must(t, err)
	defer said.Close()
	bomb.Stderr = said
	err = bomb.Run() // the first fork that is denied ends the shell
	out, _ := os.ReadFile(said.Name())
	if err == nil || !strings.Contains(string(out), "fork") {
		t.Errorf("the bomb ended with %v: %s", err, out)
	}
	// The cgroup is full: not even a birth from outside is let in.
	for range 2 {
		late := role(g, "wait")
		if err := late.Start(); err == nil {
			late.Process.Kill()
			defer late.Wait()
		} else if !errors.Is(err, syscall.EAGAIN) {
			t.Errorf("a birth into a full cgroup: %v", err)
		}
	}
	_, denied, err := g.Events()
	if m := stat(t, g.Path()); err != nil || denied < 2 || m.Pids.Current > 16 || m.Pids.Current < 15 {
		t.Errorf("%d tasks, %d forks denied, %v", m.Pids.Current, denied, err)
	}
	must(t, g.Kill())
	must(t, g.Remove(20*time.Second))
}

func TestMemoryEaterIsKilled(t *testing.T) {
	b := fullBase(t)
	g := create(t, b, 1, protocolLimits(64<<20, 0))
	cmd := role(g, "touch", strconv.Itoa(256<<20))
	out, err := cmd.CombinedOutput()
	if s, _ := cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGKILL {
		t.Errorf("the eater ended with %v: %s", err, out)
	}
	oom, _, err := g.Events()
	if err != nil || oom == 0 {
		t.Errorf("oom_kill=%d, %v", oom, err)
	}
	if m := stat(t, g.Path()); m.MemoryEvents.OomKill != oom {
		t.Errorf("oom_kill=%d, the witness says %d", oom, m.MemoryEvents.OomKill)
	}
	must(t, g.Remove(20*time.Second))
}

// The control of the test above, and what RLIMIT_AS would have broken: node, Java and
// Go map gigabytes that they do not touch.
func TestUntouchedReservationIsNotCounted(t *testing.T) {
	b := fullBase(t)
	g := create(t, b, 1, protocolLimits(64<<20, 0))
	for _, args := range [][]string{{"reserve", strconv.Itoa(4 << 30)}, {"touch", strconv.Itoa(16 << 20)}} {
		if out, err := role(g, args[0], args[1]).CombinedOutput(); err != nil || string(out) != "ready\n" {
			t.Errorf("%v: %v, %q", args, err, out)
		}
	}
	if oom, _, err := g.Events(); oom != 0 || err != nil {
		t.Errorf("oom_kill=%d, %v", oom, err)
	}
	must(t, g.Remove(20*time.Second))
}

// The whole group goes: a build whose compiler was killed must not go on.
func TestOutOfMemoryKillsTheGroup(t *testing.T) {
	b := fullBase(t)
	g := create(t, b, 1, protocolLimits(64<<20, 0))
	bystander, _ := waiter(t, g)
	role(g, "touch", strconv.Itoa(256<<20)).Run()
	bystander.Wait()
	if s, _ := bystander.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGKILL {
		t.Errorf("the bystander ended with %v", bystander.ProcessState)
	}
	must(t, g.Remove(20*time.Second))
}

// A process that moved into the base after it was accepted: the error names the
// cause, and it is not a late entry.
func TestBaseThatGotAProcess(t *testing.T) {
	b := fullBase(t)
	f := &Group{dir: b.dir}
	cmd, _ := waiter(t, f)
	if _, err := b.Create(1, protocolLimits(0, 16)); err == nil || !strings.Contains(err.Error(), "cannot enable the controllers") {
		t.Errorf("got %v", err)
	}
	if _, reason := Open(b.Path(), ""); !strings.Contains(reason, "holds 1 processes") {
		t.Errorf("asked again: %q", reason)
	}
	cmd.Process.Kill()
	cmd.Wait()
	g := create(t, b, 1, protocolLimits(0, 16))
	must(t, g.Remove(0))
}

func TestTooSmallMakesNothing(t *testing.T) {
	b := fullBase(t)
	if _, err := b.Create(1, protocolLimits(1<<20, 0)); err == nil {
		t.Error("1 MiB was accepted")
	}
	if left, err := b.dir.children(); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if on, err := b.dir.fields("cgroup.subtree_control"); err != nil || len(on) != 0 {
		t.Errorf("controllers were enabled: %v, %v", on, err)
	}
}
