package jail

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"sandboxd/internal/testenv"
)

// fakeTable is a process table of parent links.
type fakeTable struct {
	parent  map[int]int
	missing map[int]bool // rows that cannot be seen
	noFile  bool         // a kernel without the children file
	err     error
}

func (f fakeTable) children(pid int) ([]int, error) {
	if f.noFile {
		return nil, errNoChildrenFile
	}
	var out []int
	for k, p := range f.parent {
		if p == pid && !f.missing[k] {
			out = append(out, k)
		}
	}
	return out, f.err
}

func (f fakeTable) all() ([]proc, error) {
	var out []proc
	for k, p := range f.parent {
		if !f.missing[k] {
			out = append(out, proc{pid: k, ppid: p})
		}
	}
	return out, f.err
}

func (f fakeTable) waits(p proc) bool { return p.state == 'S' }

func (f fakeTable) stat(pid int) (proc, error) {
	if p, ok := f.parent[pid]; ok && !f.missing[pid] {
		return proc{pid: pid, ppid: p}, nil
	}
	return proc{}, os.ErrNotExist
}

// Both ways of walking find the same, whatever the tree, and end on a ring.
func TestDescendants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := map[int]int{}
		n := rapid.IntRange(1, 40).Draw(t, "n")
		for pid := 2; pid < n+2; pid++ {
			parent[pid] = rapid.IntRange(1, n+2).Draw(t, "parent")
		}
		root := rapid.IntRange(1, n+2).Draw(t, "root")
		a, err1 := descendants(fakeTable{parent: parent}, root)
		b, err2 := descendants(fakeTable{parent: parent, noFile: true}, root)
		slices.Sort(a)
		slices.Sort(b)
		if err1 != nil || err2 != nil || !slices.Equal(a, b) {
			t.Fatalf("%v %v, %v %v", a, err1, b, err2)
		}
		for pid := range parent {
			below := false
			for at, steps := parent[pid], 0; steps <= n; at, steps = parent[at], steps+1 {
				below = below || at == root
			}
			if got := slices.Contains(a, pid); got != (below && pid != root) {
				t.Fatalf("%d below %d: %v in %v", pid, root, got, parent)
			}
		}
	})
}

func TestDescendantsTellErrors(t *testing.T) {
	for _, noFile := range []bool{false, true} {
		table := fakeTable{parent: map[int]int{2: 1}, noFile: noFile, err: unix.EMFILE}
		if _, err := descendants(table, 1); !errors.Is(err, unix.EMFILE) {
			t.Errorf("got %v: a table that cannot be read is no empty one", err)
		}
	}
}

// payloadGroup starts a shell with a child in its group and a pidfd for the shell.
// Both exit 5 on TERM.
func payloadGroup(t *testing.T) (*exec.Cmd, *process, testenv.Marker) {
	t.Helper()
	dir := t.TempDir()
	up, got := testenv.NewMarker(dir, "up"), testenv.NewMarker(dir, "got")
	cmd := exec.Command("setsid", "sh", "-c", `trap 'wait; exit 5' TERM
sh -c 'trap "`+got.Shell("x")+`; exit 5" TERM; `+up.Shell("x")+`; while :; do sleep 0.01; done' &
while :; do sleep 0.01; done`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up.Wait(t)
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return cmd, &process{pid: cmd.Process.Pid, payload: cmd.Process.Pid, payloadFD: fd, initFD: -1, jailed: true, init: os.Getpid()}, got
}

// A table that lacks the payload's row, or cannot be read, falls back to its group.
func TestTermFallsBackToTheGroup(t *testing.T) {
	testenv.NoNewFDs(t)
	for name, table := range map[string]procTable{
		"row missing": fakeTable{parent: map[int]int{}},
		"unreadable":  fakeTable{err: unix.EMFILE},
		"no file":     fakeTable{noFile: true},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, p, got := payloadGroup(t)
			s := &supervision{p: p, table: table}
			s.term()
			got.Wait(t)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 5 {
				t.Errorf("exit %d", code)
			}
			if !s.over() {
				t.Error("its end does not show")
			}
			s.term() // nobody is hit now
		})
	}
}

// With the true table everything below init is found, its pids by their own.
func TestTermByDescent(t *testing.T) {
	cmd, p, got := payloadGroup(t)
	s := &supervision{p: p, table: realProc{}}
	targets, _, err := s.payloads()
	if err != nil || !slices.Contains(targets, p.payload) || slices.Contains(targets, os.Getpid()) || len(targets) < 2 {
		t.Errorf("got %v %v", targets, err)
	}
	s.term()
	got.Wait(t)
	_ = cmd.Wait()
}

// A pid whose start time changed between two looks is not signalled.
func TestSignalPidOfAReusedPid(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if err := signalPid(&aging{}, pid, unix.SIGKILL, listing{ended: ticks()}); err != unix.ESRCH {
		t.Errorf("got %v", err)
	}
	if err := signalPid(realProc{}, pid, 0, listing{root: os.Getpid(), ended: ticks()}); err != nil {
		t.Errorf("it was hit: %v", err)
	}
	self, err := (realProc{}).stat(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := signalPid(realProc{}, pid, unix.SIGKILL, listing{os.Getpid(), 0, self.start - 1}); err != unix.ESRCH {
		t.Errorf("a process that began after the listing: %v", err)
	}
	// Its number was listed below another process, and became its own since.
	if err := signalPid(realProc{}, pid, unix.SIGKILL, listing{os.Getpid() + 1, self.start, ticks()}); err != unix.ESRCH {
		t.Errorf("a process that began during the listing, elsewhere: %v", err)
	}
	if err := signalPid(realProc{}, pid, 0, listing{os.Getpid(), 0, ticks()}); err != nil {
		t.Errorf("it was hit: %v", err)
	}
	if err := signalPid(realProc{}, pid, unix.SIGKILL, listing{os.Getpid(), self.start, self.start}); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.String() != "signal: killed" {
		t.Errorf("got %v", cmd.ProcessState)
	}
}

// aging is a table in which every look finds another process.
type aging struct {
	fakeTable
	n uint64
}

func (a *aging) stat(pid int) (proc, error) { a.n++; return proc{pid: pid, start: a.n}, nil }

func TestStat(t *testing.T) {
	if self, err := (realProc{}).stat(os.Getpid()); err != nil || self.pid != os.Getpid() || self.ppid != os.Getppid() || self.start == 0 || self.state == 0 {
		t.Errorf("got %+v %v of %d", self, err, os.Getpid())
	}
}
