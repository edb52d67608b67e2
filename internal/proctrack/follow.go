package proctrack

import (
	"errors"
	"sync"
	"time"
)

// Interval is the time between two samples.
const Interval = 20 * time.Millisecond

// ErrGone says that the process with that number is not the one that was meant.
var ErrGone = errors.New("the process has ended")

// errHasIt says that a process got the signal with its group.
var errHasIt = errors.New("the process got the signal with its group")

// Table is a source of snapshots and of single rows.
type Table interface {
	// Snapshot reads the table into buf, which it may grow.
	Snapshot(buf Snapshot) (Snapshot, error)
	// Look reads one row; ErrGone where there is none.
	Look(pid int32) (Proc, error)
}

// Follower samples a table while an execution runs.
type Follower struct {
	table Table
	kill  func(pid int32, signal int) error

	mu      sync.Mutex
	tracker *Tracker
	buf     Snapshot
	living  []Proc // a copy: captures reuse the tracker's
	err     error  // of the last sample

	quit, done chan struct{}
	once       sync.Once
}

// Follow begins to sample at once. kill sends a signal to one process.
func Follow(table Table, root Proc, kill func(pid int32, signal int) error) *Follower {
	f := &Follower{table: table, kill: kill, tracker: New(root), quit: make(chan struct{}), done: make(chan struct{})}
	go f.run()
	return f
}

func (f *Follower) run() {
	defer close(f.done)
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		_, _ = f.Sample() // the error is kept, and the next sample may work
		select {
		case <-tick.C:
		case <-f.quit:
			return
		}
	}
}

// Stop ends the sampling.
func (f *Follower) Stop() {
	f.once.Do(func() { close(f.quit) })
	<-f.done
}

// Sample takes one now and says how many descendants live, the root included,
// zombies not: those are their parent's to reap.
func (f *Follower) Sample() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sample()
}

func (f *Follower) sample() (int, error) {
	f.buf, f.err = f.table.Snapshot(f.buf[:0])
	if f.err != nil {
		return len(f.living), f.err
	}
	f.living = f.living[:0]
	for _, p := range f.tracker.Capture(f.buf) {
		if !p.Zombie {
			f.living = append(f.living, p)
		}
	}
	return len(f.living), nil
}

// Signal samples once more and signals every living descendant, children before
// their parents so that no parent can restart one that has just ended. Right before
// each signal the time of birth is looked at again. Processes in group are left out:
// they have got the signal with their group, and a second TERM means more than one to
// many programs; 0 leaves nobody out. It says how many got it.
func (f *Follower) Signal(signal int, group int32) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.sample()
	sent := 0
	for i := len(f.living) - 1; i >= 0; i-- {
		if f.deliver(f.living[i], signal, group) == nil {
			sent++
		}
	}
	return sent, err
}

// deliver signals a process if it still is the one that was seen.
func (f *Follower) deliver(p Proc, signal int, group int32) error {
	now, err := f.table.Look(p.PID)
	if err != nil {
		return err
	}
	if now.Born != p.Born || now.PID != p.PID || now.Zombie {
		return ErrGone
	}
	if group != 0 && now.PGID == group {
		return errHasIt
	}
	return f.kill(p.PID, signal)
}
