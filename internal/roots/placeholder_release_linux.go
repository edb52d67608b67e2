package roots

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Release removes the placeholders that nobody else uses. Call it only when the
// jail's init has ended: until then a command of it could plant something under
// the name, and has, in trials. What cannot be removed is named in the error; what
// another execution still uses is left to that one.
func (p *Placeholders) Release() error {
	if p == nil {
		return nil
	}
	var errs []error
	var free []*placeholder
	for i := len(p.list) - 1; i >= 0; i-- {
		one := p.list[i]
		ok, err := one.claim()
		errs = append(errs, err, one.strange())
		if !ok {
			// At once: this plan may hold the same inode under another name.
			one.close()
			continue
		}
		defer one.close()
		free = append(free, one)
	}
	p.list = nil
	// A mount in use is that of a process that was killed, whose lock is gone before
	// its jail is; the next execution removes the placeholder.
	used := mountsOn(free)
	for _, one := range free {
		if !used[one] {
			errs = append(errs, one.remove())
		}
	}
	return errors.Join(errs...)
}

// claim takes the exclusive lock and says whether the placeholder may be removed.
func (p *placeholder) claim() (bool, error) {
	if !p.locked {
		return false, fmt.Errorf("cannot remove the placeholder %q: this file system has no locks, so whether it is in use is unknown; remove it by hand", p.op.Path)
	}
	err := flock(p.fd, unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil // the last one removes it
	}
	if err != nil {
		return false, fmt.Errorf("cannot remove the placeholder %q: %w", p.op.Path, err)
	}
	if !p.own && !marked(p.fd) {
		return false, nil // somebody's own
	}
	return p.intact(p.name), nil
}
