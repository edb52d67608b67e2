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
