package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"sandboxd/internal/jail"
	"sandboxd/protocol"
)

// What is taken of a broker that speaks before the host has been looked at: beyond
// it the frames wait, as they do behind too much stdin.
const (
	maxEarly      = 64                   // frames
	maxEarlyBytes = jail.MaxPendingStdin // of what they hold; an exec_start counts as half of it
)

// lookGrace is how long the look at the host may go on when the helper has to end:
// usually it is through in milliseconds, and the hello that is still owed says more.
const lookGrace = time.Second

// prepare has the host looked at. A bubblewrap that hangs must not hold up the end:
// a signal, a shutdown, a broken channel and a broker that has gone all cut it short.
func (l *loop) prepare(look func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	var gone <-chan struct{}
	if l.hangup != nil {
		gone = l.hangup(stop)
	}
	looked, hung := make(chan error, 1), make(chan struct{})
	go func() { looked <- look(ctx) }()
	l.frames = l.read()
	frames, signals, budget := l.frames, l.signals, maxEarlyBytes
	var once sync.Once
	end := func() {
		once.Do(func() {
			time.AfterFunc(lookGrace, cancel)
			go func() {
				if !jail.Within(endBound, stop) {
					close(hung)
				}
			}()
		})
	}
	for {
		select {
		case err := <-looked:
			return err
		case <-hung: // none of the host's own bounds has ended it
			return fmt.Errorf("cannot end within %v: looking at this host does not; see whether a file system hangs", endBound)
		case in := <-frames:
			l.early = append(l.early, in)
			budget -= weight(in)
			if ends(in) {
				end()
			}
			if ends(in) || budget <= 0 || len(l.early) == maxEarly {
				frames = nil
			}
		case <-signals:
			signals = nil
			end()
		case <-gone:
			gone = nil
			end()
		}
	}
}

// ends says whether nothing behind this frame matters.
func ends(in incoming) bool {
	var de *protocol.DecodeError
	if errors.As(in.err, &de) {
		return de.Fatal
	}
	_, shutdown := in.frame.Body.(protocol.Shutdown)
	return in.err != nil || shutdown
}

// weight is what keeping a frame costs, in bytes: of the ones that a broker has no
// reason to send, too.
func weight(in incoming) int {
	kept := len(in.frame.Kind)
	switch b := in.frame.Body.(type) {
	case protocol.ExecStdin:
		return kept + len(b.Data)
	case protocol.ExecStart:
		return kept + maxEarlyBytes/2
	case protocol.Hello:
		return kept + len(b.Peer) + texts(b.Features)
	case protocol.ExecExit:
		return kept + texts(b.Enforcement)
	case protocol.ErrorBody:
		return kept + len(b.Msg)
	}
	return kept
}

func texts(list []string) int {
	n := len(list) * int(unsafe.Sizeof(""))
	for _, s := range list {
		n += len(s)
	}
	return n
}

// replay handles what came while the host was looked at.
func (l *loop) replay() error {
	for _, in := range l.early {
		select {
		case <-l.signals:
			return errOrderly
		default:
		}
		if err := l.receive(in); err != nil {
			return err
		}
	}
	l.early = nil
	return nil
}
