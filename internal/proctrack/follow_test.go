package proctrack

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a table that a test changes.
type fake struct {
	mu     sync.Mutex
	s      Snapshot
	look   map[int32]Proc // instead of the row, for what changes between two looks
	fail   error
	killed []int32
}

func (f *fake) Snapshot(buf Snapshot) (Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append(buf, f.s...), f.fail
}

func (f *fake) Look(pid int32) (Proc, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, ok := f.look[pid]; ok {
		return p, nil
	}
	for _, p := range f.s {
		if p.PID == pid {
			return p, nil
		}
	}
	return Proc{}, ErrGone
}

func (f *fake) kill(pid int32, _ int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.killed = append(f.killed, pid)
	return nil
}

func TestSignal(t *testing.T) {
	f := &fake{s: Snapshot{root, {PID: 20, PPID: 10, Born: 101}, {PID: 21, PPID: 20, Born: 102}, {PID: 22, PPID: 20, Born: 103, Zombie: true}, {PID: 99, PPID: 1, Born: 5}}}
	w := Follow(f, root, f.kill)
	defer w.Stop()
	if n, err := w.Sample(); n != 3 || err != nil {
		t.Fatalf("%d living, %v; want 3", n, err)
	}
	// Between the sample and the signal 20's number goes to somebody else.
	f.mu.Lock()
	f.look = map[int32]Proc{20: {PID: 20, PPID: 1, Born: 700}}
	f.mu.Unlock()
	n, err := w.Signal(15, 0)
	if n != 2 || err != nil || !slices.Equal(f.killed, []int32{21, 10}) {
		t.Errorf("%d signalled (%v), %v; want 21 and then 10", n, f.killed, err)
	}
}

// Who has got a signal with the group gets no second one; who has left the group
// between the sample and the signal gets the first.
func TestSignalBesideTheGroup(t *testing.T) {
	f := &fake{s: Snapshot{
		{PID: 10, PPID: 1, PGID: 10, Born: 100}, {PID: 20, PPID: 10, PGID: 10, Born: 101},
		{PID: 21, PPID: 20, PGID: 21, Born: 102}, {PID: 22, PPID: 20, PGID: 10, Born: 103},
	}, look: map[int32]Proc{22: {PID: 22, PPID: 20, PGID: 22, Born: 103}}}
	w := Follow(f, root, f.kill)
	defer w.Stop()
	if n, err := w.Signal(15, 10); n != 2 || err != nil || !slices.Equal(f.killed, []int32{22, 21}) {
		t.Errorf("%d signalled (%v), %v; want 22 and 21", n, f.killed, err)
	}
	f.killed = nil
	if n, err := w.Signal(9, 0); n != 4 || err != nil {
		t.Errorf("%d signalled (%v), %v; want all four", n, f.killed, err)
	}
}

func TestAFailedSampleKeepsWhatIsKnown(t *testing.T) {
	f := &fake{s: Snapshot{root, {PID: 20, PPID: 10, Born: 101}}}
	w := Follow(f, root, f.kill)
	defer w.Stop()
	if n, _ := w.Sample(); n != 2 {
		t.Fatalf("%d living, want 2", n)
	}
	f.mu.Lock()
	f.fail = errors.New("no table")
	f.mu.Unlock()
	if n, err := w.Signal(9, 0); n != 2 || err == nil {
		t.Errorf("%d signalled, error %v; want 2 and an error", n, err)
	}
}

// Captures from several sides give whole answers each; the race detector looks on.
func TestConcurrentCaptures(t *testing.T) {
	f := &fake{s: many(200)}
	w := Follow(f, root, f.kill)
	defer w.Stop()
	want, _ := w.Sample()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if n, err := w.Sample(); n != want || err != nil {
					t.Errorf("%d living, %v; want %d", n, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}
