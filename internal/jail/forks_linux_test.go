package jail

import (
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/ready"
	"sandboxd/internal/testenv"
)

// shows says whether an execution that is not p's takes what has p's number, and hangs
// below the helper, for its own.
func shows(t *testing.T, pid int) bool {
	t.Helper()
	_, s, _ := newFake()
	s.p.jailed, s.table = false, fakeTable{parent: map[int]int{pid: os.Getpid(), 1 << 29: pid}}
	all, err := s.offspring()
	if err != nil || slices.Contains(all, pid) != slices.Contains(all, 1<<29) {
		t.Fatalf("%v, %v", all, err)
	}
	return slices.Contains(all, pid)
}

// The number of a leash that has ended is anybody's: a command that forks until it has it
// hides nothing there.
func TestNumberOfAnEndedLeash(t *testing.T) {
	t.Cleanup(func() { // its goroutine would be found at the end
		close(forker.work)
		forker.Once, forker.work = sync.Once{}, make(chan func())
	})
	for name, end := range map[string]func(func(bool) (*tether, error)){
		"where there is no bubblewrap": func(tied func(bool) (*tether, error)) {
			if l, err := tied(false); l != nil || err != nil {
				t.Errorf("%v, %v", l, err)
			}
		},
		"at the end": func(tied func(bool) (*tether, error)) {
			l, err := tied(true)
			if err != nil {
				t.Fatal(err)
			}
			forks.Lock() // a fork that hangs is no reason to wait
			defer forks.Unlock()
			if err := (&Host{leash: l}).Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tied := tie()
			pid := 0
			testenv.Eventually(t, "the leash", func() bool {
				forks.Lock()
				defer forks.Unlock()
				for n, p := range forks.known {
					if !p.gone() {
						pid = n
					}
				}
				return pid != 0
			})
			if shows(t, pid) {
				t.Error("the leash itself is taken for a command's")
			}
			if end(tied); !shows(t, pid) {
				t.Error("who has its number is hidden")
			}
		})
	}
}

// So is that of a scaffolding, from the moment when it was reaped, its own execution's too.
func TestNumberOfAReapedScaffolding(t *testing.T) {
	const pid = 1<<29 + 1
	earlier := &process{pid: pid}
	forks.Lock()
	forks.known[pid] = earlier
	forks.Unlock()
	defer func() {
		forks.Lock()
		delete(forks.known, pid)
		forks.Unlock()
	}()
	_, s, _ := newFake()
	s.p, s.table = earlier, fakeTable{parent: map[int]int{pid: os.Getpid()}}
	if shows(t, pid) || !s.sweep(0) {
		t.Error("a scaffolding that lives is taken for a command's")
	}
	earlier.reaped = true
	if !shows(t, pid) || s.sweep(0) {
		t.Error("who has its number is hidden")
	}
	forks.Lock()
	clear(forks.left)
	forks.Unlock()

	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	next := &process{pid: cmd.Process.Pid}
	forks.Lock()
	forks.known[next.pid] = next
	forks.Unlock()
	ended := &process{pid: next.pid, os: cmd.Process, exit: make(chan *os.ProcessState, 1)}
	if ended.reap(); !ended.gone() || shows(t, next.pid) {
		t.Error("the end of one takes the next one, which has its number, for gone")
	}
	forks.Lock()
	delete(forks.known, next.pid)
	forks.Unlock()
}

// What does not die at the KILL is still looked for when the execution is taken down, with
// whatever it has forked, and said; only the next one is not to blame.
func TestLeftoverOfAKill(t *testing.T) {
	for name, jailed := range map[string]bool{"degraded": false, "init is not known": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer func() {
					forks.Lock()
					clear(forks.left)
					forks.Unlock()
				}()
				_, s, _ := newFake()
				parent := map[int]int{1 << 29: os.Getpid()}
				s.p.jailed, s.reaped, s.table = jailed, true, fakeTable{parent: parent}
				s.kill()
				parent[1<<28] = 1 << 29
				began := time.Now()
				s.tearDown(false)
				if took := time.Since(began); !s.lingers || took < KillBound {
					t.Errorf("lingers %v, after %v", s.lingers, took)
				}
				if s.gather() || time.Since(began) > KillBound+time.Second {
					t.Errorf("it is clean after all, or waits again: %v", time.Since(began))
				}
				if left, err := s.offspring(); err != nil || len(left) != 2 {
					t.Errorf("its own: %v, %v", left, err)
				}
				_, next, _ := newFake()
				next.table = s.table
				if left, err := next.offspring(); err != nil || len(left) != 0 {
					t.Errorf("the next one's: %v, %v", left, err)
				}
			})
		})
	}
}

// The number of an init that its supervisor reaped is another's too: that is not reaped
// in its place, nor remembered.
func TestNumberOfAReapedInit(t *testing.T) {
	for name, script := range map[string]string{"has ended": "true", "lives": "read x"} {
		t.Run(name, func(t *testing.T) {
			init, other := exec.Command("true"), exec.Command("sh", "-c", script)
			in, err := other.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			if err := init.Start(); err != nil {
				t.Fatal(err)
			}
			if name == "has ended" {
				testenv.Eventually(t, "a zombie", func() bool {
					row, err := (realProc{}).stat(other.Process.Pid)
					return err == nil && row.state == 'Z'
				})
			}
			_, s, _ := newFake()
			s.reaped, s.p.init = true, other.Process.Pid
			if s.p.initFD, err = unix.PidfdOpen(init.Process.Pid, 0); err != nil {
				t.Fatal(err)
			}
			if err := init.Wait(); err != nil {
				t.Fatal(err)
			}
			if !s.gather() {
				t.Error("it is said to be left")
			}
			forks.Lock()
			if len(forks.left) > 0 {
				t.Errorf("remembered: %v", forks.left)
			}
			clear(forks.left)
			forks.Unlock()
			_ = in.Close()
			_ = other.Wait()
			if other.ProcessState == nil {
				t.Error("who has its number was reaped")
			}
		})
	}
}

// A wait that fails is no end of the command.
func TestWaitThatFails(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, s, _ := newFake()
	if s.p.payloadFD, err = unix.PidfdOpen(cmd.Process.Pid, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s.p.payloadFD)
	if s.p.waiter, err = ready.New(s.p.payloadFD, unix.EPOLLIN); err != nil {
		t.Fatal(err)
	}
	_ = s.p.waiter.Close()
	s.looked = make(chan struct{})
	go s.look()
	select {
	case <-s.gone:
		t.Error("a command that runs is said to have ended")
	case <-s.looked:
		t.Error("nobody looks any more")
	case <-time.After(10 * askEvery):
	}
	_ = in.Close()
	select {
	case <-s.gone:
	case <-time.After(testenv.Patience):
		t.Error("its end is not seen")
	}
	<-s.looked
	_ = cmd.Wait()

	_, next, _ := newFake() // and a look that nobody wants any more ends
	next.p.waiter, next.looked = s.p.waiter, make(chan struct{})
	go next.look()
	close(next.quit)
	<-next.looked
}
