package cli

import (
	"os"
	"sync/atomic"

	"sandboxd/protocol/broker"
)

// Signals are those that a command of this package acts on.
type Signals struct {
	C   <-chan os.Signal
	End func()
}

// watcher acts on the signals that come while the command runs.
type watcher struct {
	done  chan struct{}
	ended chan struct{}
	twice atomic.Bool
}

// watch cancels by the helper's ladder on the first signal that asks for an end, and
// kills the helper, whose death takes the jail, on the second or on one that will not
// wait. A request to stop stops the command and then this process.
func watch(notify func() Signals, e *broker.Execution, h *broker.Helper) *watcher {
	w := &watcher{done: make(chan struct{}), ended: make(chan struct{})}
	signals := notify()
	go func() {
		defer close(w.ended)
		defer signals.End()
		for asked := false; ; {
			select {
			case <-w.done:
				return
			case s := <-signals.C:
				switch meaning(s) {
				case toPause:
					pause()
				case toKill:
					w.kill(h)
				case toEnd:
					if asked {
						w.kill(h)
						continue
					}
					asked = true
					e.Cancel()
				}
			}
		}
	}()
	return w
}

func (w *watcher) kill(h *broker.Helper) {
	w.twice.Store(true)
	go h.Kill() // waits for the end, which Wait tells
}

// stop ends the watch.
func (w *watcher) stop() {
	close(w.done)
	<-w.ended
}

// killed says whether the helper was killed.
func (w *watcher) killed() bool { return w.twice.Load() }

// What a signal asks for.
type request uint8

const (
	nothing request = iota // it is only not to kill this process
	toEnd
	toKill
	toPause
)
