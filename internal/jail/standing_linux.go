package jail

import (
	"sync"
	"time"

	"sandboxd/protocol"
)

// standing is the standby, if there is one.
type standing struct {
	sync.Mutex
	keeper  *keeper
	running int // executions
	closed  bool
	holding sync.WaitGroup // keepers that have put something on the host
	left    error          // the first thing that they could not take away again
}

// Ready has the jail of a policy built ahead, where that is wanted: the next execution
// is likely to ask for it.
func (h *Host) Ready(p protocol.Policy) { h.park(Request{Policy: p, Argv: []string{"true"}, Cwd: "/"}) }

// park starts a keeper, unless one is there or an execution runs.
func (h *Host) park(req Request) {
	h.standing.Lock()
	defer h.standing.Unlock()
	if h.NoStandby || h.standing.closed || h.standing.running > 0 || h.standing.keeper != nil || !(&job{facts: h.Facts}).jailed() {
		return
	}
	k := &keeper{host: h, adopt: make(chan *Run), drop: make(chan struct{}), over: make(chan struct{}), heard: make(chan struct{})}
	h.standing.keeper = k
	go k.run(req)
}

// forget takes a keeper out of the host's hands.
func (h *Host) forget(k *keeper) {
	h.standing.Lock()
	defer h.standing.Unlock()
	if h.standing.keeper == k {
		h.standing.keeper = nil
	}
}

// launch runs an execution in the standby's goroutine, or in its own.
func (h *Host) launch(r *Run) {
	h.standing.Lock()
	k := h.standing.keeper
	h.standing.keeper = nil
	h.standing.running++
	h.standing.Unlock()
	if k == nil {
		r.main(h, nil)
	} else {
		late := time.NewTimer(parkPatience)
		defer late.Stop()
		select {
		case k.adopt <- r:
			<-r.released
		case <-k.over:
			r.main(h, nil)
		case <-late.C: // a file system may hang under it
			close(k.drop)
			r.main(h, nil)
		}
	}
	h.standing.Lock()
	h.standing.running--
	h.standing.Unlock()
	if x, _ := r.Result(); x != nil {
		h.park(r.req)
	}
}

// hold says whether a keeper may put something on the host. Close waits for those that
// do, and not for one under which a file system hangs: that has nothing there yet.
func (h *Host) hold() bool {
	h.standing.Lock()
	defer h.standing.Unlock()
	if !h.standing.closed {
		h.standing.holding.Add(1)
	}
	return !h.standing.closed
}

// remains notes that a standby leaves something on the host, for Close.
func (h *Host) remains(err error) {
	h.standing.Lock()
	defer h.standing.Unlock()
	if h.standing.left == nil {
		h.standing.left = err
	}
}

// Close throws a standby away, waits until nothing of any is on the host, and says what
// could not be taken away.
func (h *Host) Close() error {
	h.standing.Lock()
	k := h.standing.keeper
	h.standing.keeper, h.standing.closed = nil, true
	h.standing.Unlock()
	if k != nil {
		close(k.drop)
	}
	h.standing.holding.Wait()
	if h.leash != nil {
		h.leash.End()
	}
	h.standing.Lock()
	defer h.standing.Unlock()
	return h.standing.left
}
