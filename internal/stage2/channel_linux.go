package stage2

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// send writes one message to the helper; false means that nobody reads it.
func send(msg []byte) bool {
	for {
		err := unix.Sendto(spec.ReportFD, msg, unix.MSG_NOSIGNAL, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
}

// hungUp says whether the helper has died. It is the look that keeps a command
// from starting after its helper was killed: bubblewrap's init sets its own
// parent-death signal only after all mounts, and getppid() says nothing inside a
// pid namespace.
func hungUp() bool {
	fds := []unix.PollFd{{Fd: spec.ReportFD}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return err != nil || n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
	}
}
