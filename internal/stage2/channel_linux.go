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

// allowed waits for the helper's word that the command may run. It comes when
// bubblewrap's init has bound its life to its supervisor's, which it does only after
// it forked this process; and never from a helper that was killed. getppid() says
// nothing inside a pid namespace.
func allowed() bool {
	var word [1]byte
	for {
		n, err := unix.Read(spec.ReportFD, word[:])
		if err != unix.EINTR {
			return err == nil && n == len(word)
		}
	}
}
