package server

import (
	"errors"
	"fmt"
	"time"

	"sandboxd/internal/jail"
	"sandboxd/protocol"
)

// endBound is how long an orderly end may take: the ladder, the kill bound, and
// a moment for a broker that is slow to read its last frames.
const endBound = jail.Grace + jail.KillBound + 3*time.Second

// stdin passes bytes on. It waits only while the queue is full: the frames
// behind it wait too, so the wait also ends with the execution, on a signal, and
// when the broker hangs up.
func (l *loop) stdin(id uint64, b protocol.ExecStdin) error {
	stop := make(chan struct{})
	defer close(stop)
	var hangup <-chan struct{}
	for {
		if !l.current(id) {
			l.fail(id, protocol.CodeNoExec, "no execution is running under id %d", id)
			return nil
		}
		space := l.run.StdinSpace()
		taken, err := l.run.Stdin(b.Data, b.EOF)
		if err != nil {
			l.fail(id, protocol.CodeNoExec, "%s", err)
		}
		if taken || err != nil {
			return nil
		}
		if hangup == nil && l.hangup != nil {
			hangup = l.hangup(stop)
		}
		select {
		case <-space:
		case <-l.run.Done():
			l.awaitFreed()
		case <-l.signals:
			return errOrderly
		case <-hangup:
			return errOrderly
		case err := <-l.lost:
			return fmt.Errorf("cannot write a frame: %w", err)
		}
	}
}

// awaitFreed waits for the execution that has ended to be concluded.
func (l *loop) awaitFreed() {
	<-l.freed
	l.running = false
}

// end stops dispatching, climbs the ladder for a running execution, joins
// everything, and says whether the end was orderly.
func (l *loop) end(cause error) error {
	if l.run != nil {
		l.run.Stop(jail.Cancelled)
	}
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		l.concluding.Wait()
		for _, r := range []*jail.Run{l.previous, l.run} {
			if r != nil {
				<-r.Released()
			}
		}
		l.replies.flush()
	}()
	select {
	case <-joined:
	case <-time.After(endBound):
		return errors.Join(cause, fmt.Errorf("cannot end within %v: the broker does not read, or a process does not die", endBound))
	}
	for _, r := range []*jail.Run{l.previous, l.run} {
		if r != nil && r.Leftover() != nil {
			cause = errors.Join(cause, r.Leftover())
		}
	}
	if cause == errOrderly {
		return nil
	}
	return cause
}
