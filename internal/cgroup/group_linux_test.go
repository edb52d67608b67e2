package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"sandboxd/protocol"
)

// The child prints /proc/self/cgroup as the first thing it does: it was born there.
func TestBornInside(t *testing.T) {
	b := bareBase(t)
	g := create(t, b, 7, none)
	if want := fmt.Sprintf("exec-7-%d", os.Getpid()); filepath.Base(g.Path()) != want || !exists(g.Path()) {
		t.Fatalf("the cgroup is %s, want %s", g.Path(), want)
	}
	cmd, said := waiter(t, g)
	if !strings.Contains(said, "/"+filepath.Base(b.Path())+"/"+filepath.Base(g.Path())+"\n") {
		t.Errorf("the child was born in %q", said)
	}
	procs, err := witness(t, g.Path()).Procs(true)
	must(t, err)
	if want := []uint64{uint64(cmd.Process.Pid)}; !slices.Equal(procs, want) {
		t.Errorf("in the cgroup: %v, want %v", procs, want)
	}
	must(t, g.Kill())
	if err := cmd.Wait(); err == nil || !cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
		t.Errorf("the child ended with %v", err)
	}
	must(t, g.Remove(10*time.Second))
	if exists(g.Path()) {
		t.Error("the cgroup is still there")
	}
}

// The descriptor must not reach the command: it names the host's hierarchy, and it
// holds the lock.
func TestDescriptorIsNotInherited(t *testing.T) {
	g := create(t, bareBase(t), 1, none)
	flags, err := unix.FcntlInt(uintptr(g.FD()), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
	must(t, g.Remove(0))
}

func TestKillReachesEveryGeneration(t *testing.T) {
	for name, kill := range map[string]func(*Group) error{"cgroup.kill": (*Group).Kill, "one by one": (*Group).killListed} {
		t.Run(name, func(t *testing.T) {
			b := bareBase(t)
			g := create(t, b, 1, none)
			below := filepath.Join(g.Path(), "a", "b")
			must(t, os.MkdirAll(below, 0o755))
			waiter(t, g)
			f, err := openDir(unix.AT_FDCWD, below, unix.O_RDONLY)
			must(t, err)
			defer f.Close()
			deep := role(g, "wait")
			deep.SysProcAttr.CgroupFD = int(f.Fd())
			startReady(t, deep)
			// A session of its own, and a parent that is gone: no process group finds it.
			cmd := role(g, "wait")
			cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "setsid sleep 1000 & setsid sleep 1000 & echo ready; read x"}
			startReady(t, cmd)
			m := witness(t, g.Path())
			if procs, err := m.Procs(true); err != nil || len(procs) != 5 {
				t.Fatalf("in the cgroup: %v, %v, want 5 processes", procs, err)
			}
			must(t, kill(g))
			must(t, waitEmpty(g.dir, time.Now().Add(10*time.Second)))
			if procs, err := m.Procs(true); err != nil || len(procs) != 0 {
				t.Errorf("left: %v, %v", procs, err)
			}
			must(t, g.Remove(10*time.Second))
			if exists(g.Path()) {
				t.Error("the cgroup is still there")
			}
		})
	}
}

func TestKillOfTheDeadIsFine(t *testing.T) {
	g := create(t, bareBase(t), 1, none)
	must(t, g.Kill())
	must(t, g.killListed())
	must(t, g.Remove(0))
}

// More processes than one batch, and no list that is read for each.
func TestKillOfMany(t *testing.T) {
	b := bareBase(t)
	g := create(t, b, 1, none)
	cmd := role(g, "wait")
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done; echo ready; read x", 2*batch)}
	startReady(t, cmd)
	if procs, err := g.dir.fields("cgroup.procs"); err != nil || len(procs) != 2*batch+1 {
		t.Fatalf("%d processes, %v", len(procs), err)
	}
	must(t, g.killListed())
	must(t, g.Remove(10*time.Second))
}

// A cgroup that cannot be opened is not left behind.
func TestOutOfDescriptors(t *testing.T) {
	b := bareBase(t)
	free, err := openDir(unix.AT_FDCWD, "/", unix.O_PATH)
	must(t, err)
	lowest := uint64(free.Fd())
	free.Close()
	var now unix.Rlimit
	must(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: lowest, Max: limitOf(t)}, &now))
	_, err = b.Create(1, none)
	must(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &now, nil))
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("got %v, want EMFILE", err)
	}
	if left, err := b.dir.children(); err != nil || len(left) != 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	must(t, create(t, b, 1, none).Remove(0))
}

func limitOf(t *testing.T) uint64 {
	t.Helper()
	var now unix.Rlimit
	must(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &now))
	return now.Max
}

// What lives is never removed, and the wait for its end is bounded.
func TestRemoveLeavesTheLivingAlone(t *testing.T) {
	b := bareBase(t)
	g := create(t, b, 1, none)
	cmd, _ := waiter(t, g)
	err := g.Remove(time.Millisecond)
	if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "1 processes") {
		t.Errorf("got %v", err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil || !exists(g.Path()) {
		t.Fatalf("the child or its cgroup is gone: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	b.Sweep()
	if exists(g.Path()) {
		t.Error("the sweep left the cgroup there once it was empty")
	}
}

// A counter that was asked for and cannot be read is no zero.
func TestUnreadableEventsAreAnError(t *testing.T) {
	for name, c := range map[string]struct {
		limits protocol.Limits
		text   string
		want   string
	}{
		"no file":     {protocolLimits(0, 4), "", "pids.events"},
		"no such key": {protocolLimits(64<<20, 0), "low 0\nhigh 0\n", "names no oom_kill"},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			if c.text != "" {
				must(t, os.WriteFile(tmp+"/memory.events", []byte(c.text), 0o644))
			}
			f, err := openDir(unix.AT_FDCWD, tmp, unix.O_PATH)
			must(t, err)
			defer f.Close()
			g := &Group{dir: dir{f, tmp}, limits: c.limits}
			oom, denied, err := g.Events()
			if oom != 0 || denied != 0 || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %d, %d, %v", oom, denied, err)
			}
		})
	}
}

func TestEventsWithoutCeilings(t *testing.T) {
	g := create(t, bareBase(t), 1, none)
	oom, denied, err := g.Events()
	if oom != 0 || denied != 0 || err != nil {
		t.Errorf("got %d, %d, %v", oom, denied, err)
	}
	if g.Allowance() != 0 {
		t.Errorf("allowance %d", g.Allowance())
	}
	must(t, g.LowerTo(Scaffold))
	must(t, g.Remove(0))
}

// A file that this kernel does not have is missing, not forbidden: O_CREAT would
// make cgroupfs say EACCES.
func TestMissingFileIsENOENT(t *testing.T) {
	b := bareBase(t)
	if err := b.dir.write("cgroup.nonesuch", "1"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v", err)
	}
	if _, err := b.dir.read("cgroup.nonesuch"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("got %v", err)
	}
	if _, err := b.dir.read("cgroup.procs"); err != nil {
		t.Error(err)
	}
}

func TestFailedSetUpLeavesNothing(t *testing.T) {
	b := bareBase(t)
	b.enabled = true // claims what is not so: memory.max will be missing
	_, err := b.Create(1, protocolLimits(64<<20, 0))
	if !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), "memory.max") {
		t.Errorf("got %v", err)
	}
	if left, err := b.dir.children(); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	g := create(t, b, 1, none)
	must(t, g.Remove(0))
}

func TestBusyIsRetriedAndBounded(t *testing.T) {
	busy := &os.PathError{Op: "write", Path: "x", Err: unix.EBUSY}
	for _, c := range []struct {
		name   string
		fail   int // calls that say busy
		then   error
		calls  int
		waited bool
	}{
		{"at once", 0, nil, 1, false},
		{"transient", 3, nil, 4, true},
		{"for ever", 1000, nil, busyTries, true},
		{"another error", 0, unix.EPERM, 1, false},
		{"busy, then another error", 2, unix.EPERM, 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls, waited := 0, time.Duration(0)
			err := retryBusy(func() error {
				if calls++; calls <= c.fail {
					return busy
				}
				return c.then
			}, func(d time.Duration) { waited += d })
			want := c.then
			if c.fail > calls-1 {
				want = unix.EBUSY
			}
			if calls != c.calls || !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("%d calls, %v", calls, err)
			}
			if (waited > 0) != c.waited || waited > time.Second {
				t.Errorf("waited %v", waited)
			}
		})
	}
}
