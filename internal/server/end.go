package server

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sandboxd/internal/jail"
)

// endBound is how long an orderly end may take: the ladder, the kill bound, and
// a moment for a broker that is slow to read its last frames.
const endBound = jail.Grace + jail.KillBound + 3*time.Second

// end stops dispatching, climbs the ladder for a running execution, joins
// everything, and says whether the end was orderly.
func (l *loop) end(cause error) error {
	if cause == errOrderly {
		cause = nil
	}
	close(l.ending)
	if l.run != nil {
		l.run.Stop(jail.Cancelled)
	}
	joined, released := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(released)
		for _, r := range append(l.unreleased(), l.previous, l.run) {
			if r != nil {
				<-r.Released()
				l.note(r)
			}
		}
		if l.runner != nil {
			err := l.runner.Close()
			l.mu.Lock()
			defer l.mu.Unlock()
			l.kept = err
		}
	}()
	go func() {
		defer close(joined)
		<-released
		l.concluding.Wait()
		l.replies.flush()
	}()
	if !jail.Within(endBound, joined) {
		cause = errors.Join(cause, fmt.Errorf("cannot end within %v: the broker does not read, a process does not die, or a file system hangs", endBound))
		if l.run != nil {
			l.run.Abandon() // what it put on the host is taken away all the same
		}
		jail.Within(jail.KillBound, released)
	}
	select {
	case err := <-l.lost: // the end of stdin may have been heard first
		cause = errors.Join(cause, fmt.Errorf("cannot write a frame: %w", err))
	default:
	}
	return errors.Join(cause, l.leftovers())
}

// settled waits until nothing of an execution is left on the host, and not for long
// where a file system hangs or the helper is to end: the terminal frame of the next one
// is owed all the same.
func (l *loop) settled(r *jail.Run) bool {
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-r.Released():
		case <-l.ending:
		}
	}()
	if !jail.Within(endBound, over) {
		return false
	}
	select {
	case <-r.Released():
		return true
	default:
		return false
	}
}

// maxLeftovers bounds what is kept to be told at the end.
const maxLeftovers = 20

// note remembers a released execution that left something behind: that makes the
// helper's end a failure.
func (l *loop) note(r *jail.Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Leftover() != nil && len(l.left) < maxLeftovers && !slices.Contains(l.left, r) {
		l.left = append(l.left, r)
	}
}

// keep remembers an execution that a hanging file system keeps from being released:
// the end waits for it once more.
func (l *loop) keep(r *jail.Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.late) < maxLeftovers {
		l.late = append(l.late, r)
	}
}

// stuck counts those that are still not released. Each keeps a thread and the descriptors
// of its survey, so there has to be an end of them.
func (l *loop) stuck() int {
	for _, r := range l.unreleased() {
		select {
		case <-r.Released():
			l.note(r)
			l.mu.Lock()
			l.late = slices.DeleteFunc(l.late, func(late *jail.Run) bool { return late == r })
			l.mu.Unlock()
		default:
		}
	}
	return len(l.unreleased())
}

func (l *loop) unreleased() []*jail.Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.late)
}

func (l *loop) leftovers() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := []error{l.kept}
	for _, r := range l.left {
		errs = append(errs, r.Leftover())
	}
	return errors.Join(errs...)
}
