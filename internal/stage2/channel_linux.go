package stage2

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// failure makes a record of err. The errno stands in it as a number for the
// helper and by name for a person.
func failure(step, msg string, err error) *spec.Failure {
	f := &spec.Failure{Step: step, Msg: msg}
	if err != nil {
		f.Errno = uint64(errnoOf(err))
		f.Msg += ": " + describe(err)
	}
	return f
}

// refusal is a failure whose errno is said by number only, because msg tells it.
func refusal(step, msg string, errno unix.Errno) *spec.Failure {
	return &spec.Failure{Step: step, Errno: uint64(errno), Msg: msg + " (" + unix.ErrnoName(errno) + ")"}
}

func errnoOf(err error) unix.Errno {
	for err != nil {
		if errno, ok := err.(unix.Errno); ok {
			return errno
		}
		wrapped, ok := err.(interface{ Unwrap() error })
		if !ok {
			return 0
		}
		err = wrapped.Unwrap()
	}
	return 0
}

func describe(err error) string {
	if name := unix.ErrnoName(errnoOf(err)); name != "" {
		return err.Error() + " (" + name + ")"
	}
	return err.Error()
}

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
