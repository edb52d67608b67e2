//go:build unix

package server

import (
	"errors"
	"fmt"
	"os"
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

func errLate() error {
	return fmt.Errorf("its end did not come within %v; close the writing side", policyBound)
}

var errNoPolicy = errors.New("nothing is there; open it for the helper, e.g. sh -c 'exec sandboxd 3<policy.msgpack'")

// noStdout says whether descriptor 1 was closed when this process started: Go's runtime has
// then put /dev/null in its place, open for both ways, which would take every frame.
func noStdout() bool {
	flags, err := unix.FcntlInt(1, unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		return false
	}
	var st, null unix.Stat_t
	return unix.Fstat(1, &st) == nil && unix.Stat(os.DevNull, &null) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == null.Rdev
}

// readPolicyFD reads descriptor 3 to its end and closes it. A descriptor that is
// close-on-exec was not inherited: it is the Go runtime's own. It ends with errStopped
// soon after stop is closed.
func readPolicyFD(stop <-chan struct{}) ([]byte, error) {
	flags, err := unix.FcntlInt(policyFD, unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, errNoPolicy
	}
	defer unix.Close(policyFD)
	end := time.Now().Add(policyBound)
	var b []byte
	buf := make([]byte, 64<<10)
	for {
		if err := readable(policyFD, time.Until(end), stop); err != nil {
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

// policySlice is how long a signal may go unnoticed there.
const policySlice = 100 * time.Millisecond

func readable(fd int, d time.Duration, stop <-chan struct{}) error {
	for end := time.Now().Add(d); ; {
		select {
		case <-stop:
			return errStopped
		default:
		}
		left := max(time.Until(end), 0) // a helper that was late still looks once
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(min(left, policySlice)/time.Millisecond))
		switch {
		case err == nil && n == 0 && left == 0:
			return errLate()
		case err == unix.EINTR, err == nil && n == 0:
			continue
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
