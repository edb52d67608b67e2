package jail

import "sandboxd/internal/leash"

// tie starts the process that ends what a killed helper leaves, while bubblewrap is
// tried. The function that it gives has it, or ends it again where no jail will be built.
func tie() func(wanted bool) (*leash.Leash, error) {
	type result struct {
		l   *leash.Leash
		err error
	}
	done := make(chan result, 1)
	go func() {
		forks.Lock() // it is no orphan of a command
		defer forks.Unlock()
		var l *leash.Leash
		var err error
		onForker(func() { l, err = leash.Start() })
		if l != nil {
			forks.known[l.Pid()] = true
		}
		done <- result{l, err}
	}()
	return func(wanted bool) (*leash.Leash, error) {
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
