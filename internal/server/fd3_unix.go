//go:build unix

package server

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/protocol"
)

// policyFD is where the base policy comes from, and policyBound how long it may
// take to come.
const (
	policyFD    = 3
	policyBound = 10 * time.Second
)

var errLate = fmt.Errorf("its end did not come within %v; close the writing side", policyBound)

var errNoPolicy = errors.New("nothing is there; open it for the helper, e.g. sh -c 'exec sandboxd 3<policy.msgpack'")

// readPolicyFD reads descriptor 3 to its end and closes it. A descriptor that is
// close-on-exec was not inherited: it is the Go runtime's own.
func readPolicyFD() ([]byte, error) {
	flags, err := unix.FcntlInt(policyFD, unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, errNoPolicy
	}
	defer unix.Close(policyFD)
	end := time.Now().Add(policyBound)
	var b []byte
	buf := make([]byte, 64<<10)
	for {
		if err := readable(policyFD, time.Until(end)); err != nil {
			return nil, err
		}
		n, err := unix.Read(policyFD, buf)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return b, nil
		}
		if b = append(b, buf[:n]...); len(b) > protocol.MaxPolicy {
			return nil, fmt.Errorf("it is longer than %d bytes", protocol.MaxPolicy)
		}
	}
}

func readable(fd int, d time.Duration) error {
	if d <= 0 {
		return errLate
	}
	for end := time.Now().Add(d); ; {
		left := max(time.Until(end), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left/time.Millisecond)+1)
		switch {
		case err == unix.EINTR:
			continue
		case err == nil && n == 0:
			return errLate
		}
		return err
	}
}

// hangup closes its channel once the broker's end of stdin is gone, also while
// bytes still wait to be read. stop ends the watch.
func hangup(stop <-chan struct{}) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			p := []unix.PollFd{{Fd: 0, Events: pollHangup}}
			if n, err := unix.Poll(p, 100); err == nil && n > 0 {
				close(gone)
				return
			}
		}
	}()
	return gone
}
