package jail

import (
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// stopped is a process table whose first look takes as long as the helper is stopped.
type stopped struct {
	procTable
	first func()
}

func (t *stopped) children(pid int) ([]int, error) {
	kids, err := t.procTable.children(pid)
	if first := t.first; first != nil {
		t.first = nil
		first()
	}
	return kids, err
}

// What goes on while this process does not is not counted, and all else is.
func TestBoundsCountTimeAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if Within(7*time.Second, nil) || time.Since(began) != 7*time.Second {
			t.Errorf("took %v", time.Since(began))
		}
		done := make(chan struct{})
		time.AfterFunc(3*time.Second, func() { close(done) })
		if began = time.Now(); !Within(7*time.Second, done) || time.Since(began) != 3*time.Second {
			t.Errorf("took %v", time.Since(began))
		}
		bound := newPatience(5 * time.Second)
		time.Sleep(time.Minute)
		if bound.over() || bound.left != 5*time.Second-maxAwake {
			t.Errorf("%v are left after a stop", bound.left)
		}
	})
}

// settling is a table in which init has settled by the second look; the helper is
// stopped in the first.
type settling struct {
	fakeTable
	looks int
}

func (t *settling) stat(pid int) (proc, error) {
	if pid != 2 {
		return t.fakeTable.stat(pid)
	}
	if t.looks++; t.looks == 1 {
		time.Sleep(LaunchBound + time.Minute)
		return proc{pid: 2, state: 'R'}, nil
	}
	return proc{pid: 2, state: 'S'}, nil
}

// A helper that is stopped beyond every bound before it has said its word says it then.
func TestStoppedWhileInitSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, h := newFake()
		s.p.init, s.table = 2, &settling{}
		ours, theirs, err := reportSocket()
		if err != nil {
			t.Fatal(err)
		}
		defer ours.Close()
		defer theirs.Close()
		s.p.report = ours
		s.events <- event{message{Message: spec.Message{Report: &spec.Report{}}, pidfd: -1}, nil}
		time.AfterFunc(LaunchBound+time.Minute+time.Second, func() {
			s.p.payloadFD = 1 << 20
			h.die()
			s.events <- event{noMessage, errEndOfReport}
		})
		if s.watch(); s.fail != nil || !s.executed {
			t.Errorf("got %v", s.fail)
		}
	})
}

// A scaffolding that has ended is known to have, however late this helper hears it.
func TestScaffoldingThatEndedInTime(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var si unix.Siginfo
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &si, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	_, s, _ := newFake()
	s.p.pid, s.p.os = cmd.Process.Pid, cmd.Process
	heard := time.AfterFunc(200*time.Millisecond, s.p.reap)
	defer heard.Stop()
	if !s.awaitScaffolding(0) || s.state == nil || s.state.ExitCode() != 0 {
		t.Errorf("got %v", s.state)
	}
	_, s, _ = newFake()
	s.p.pid = os.Getpid() // no child
	if s.awaitScaffolding(0) {
		t.Error("what runs has not ended")
	}
}

// A sweep looks again after the helper was stopped in it.
func TestStoppedInASweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, _ := newFake()
		parent := map[int]int{1 << 29: os.Getpid()}
		s.table = &stopped{fakeTable{parent: parent}, func() {
			time.Sleep(2 * KillBound)
			delete(parent, 1<<29)
		}}
		if !s.sweep(KillBound) {
			t.Error("what has died is said to be left")
		}
		parent[1<<29] = os.Getpid()
		began := time.Now()
		if s.sweep(KillBound) || time.Since(began) > KillBound+time.Second {
			t.Errorf("what lives is not: after %v", time.Since(began))
		}
		forks.Lock()
		clear(forks.left)
		forks.Unlock()
	})
}

// Close waits for a standby that has something on the host, and none begins after it.
func TestCloseWaitsForStandbys(t *testing.T) {
	h := &Host{}
	if !h.hold() {
		t.Fatal("no standby may begin")
	}
	closed := make(chan error)
	go func() { closed <- h.Close() }()
	select {
	case <-closed:
		t.Fatal("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	if h.hold() {
		t.Error("one begins behind it")
	}
	h.remains(errUnended)
	h.standing.holding.Done()
	if err := <-closed; err != errUnended {
		t.Errorf("got %v", err)
	}
}
