package stage2

import (
	"unsafe"

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
//
// A raw call: while a thread waits in any other the runtime may start one more in its
// place, and pids.max is lowered to the command's own before the word comes.
func allowed() bool {
	var word [1]byte
	for {
		n, _, err := unix.RawSyscall(unix.SYS_READ, spec.ReportFD, uintptr(unsafe.Pointer(&word)), uintptr(len(word)))
		if err != unix.EINTR {
			return err == 0 && n == uintptr(len(word))
		}
	}
}
