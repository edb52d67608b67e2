package jail

import "sandboxd/internal/leash"

// tether is the process that ends what a killed helper leaves. It is no orphan of a
// command, until it was ended: from then on its number is whose it will be.
type tether struct {
	*leash.Leash
	child *process
}

// tie starts it while bubblewrap is tried. The function that it gives has it, or ends it
// again where no jail will be built.
func tie() func(wanted bool) (*tether, error) {
	type result struct {
		l   *tether
		err error
	}
	done := make(chan result, 1)
	go func() {
		forks.Lock()
		defer forks.Unlock()
		var r result
		onForker(func() {
			var l *leash.Leash
			if l, r.err = leash.Start(); l != nil {
				r.l = &tether{l, &process{pid: l.Pid()}}
			}
		})
		if r.l != nil {
			forks.known[r.l.child.pid] = r.l.child
		}
		done <- r
	}()
	return func(wanted bool) (*tether, error) {
		r := <-done
		if wanted {
			return r.l, r.err
		}
		if r.l != nil {
			r.l.End()
		}
		return nil, nil
	}
}

// End reaps it. It takes no lock under which a fork may hang: what was reaped counts no
// more, and stands in the way of no other with its number.
func (t *tether) End() {
	t.child.mu.Lock()
	defer t.child.mu.Unlock()
	t.Leash.End()
	t.child.reaped = true
}
