//go:build linux || darwin

package jail

import "time"

// impatience finishes an execution that is stopped while the host is still being looked
// at, or the jail's program: a file system that hangs can keep that from ever returning.
// The function that it gives ends it, and says whether it has finished the execution.
func (r *Run) impatience(h *Host) (built func() bool) {
	quit, late := make(chan struct{}), make(chan bool, 1)
	go func() {
		select {
		case <-quit:
			late <- false
			return
		case <-r.stop:
		}
		grace := time.NewTimer(Grace)
		defer grace.Stop()
		select {
		case <-quit:
			late <- false
		case <-grace.C:
			r.finish(r.exitOf(h.unbuilt(r.req), nil, nil, r.neverStarted()), nil)
			late <- true
		}
	}()
	return func() bool {
		close(quit)
		return <-late
	}
}
