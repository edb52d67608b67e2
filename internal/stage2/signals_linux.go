package stage2

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// Kernel constants of rt_sigaction(2) that the packages do not export.
const (
	sigDefault = 0
	sigIgnore  = 1
	sigSetSize = 8  // bytes of the kernel's sigset_t
	lastSignal = 64 // _NSIG on every architecture built for
)

// sigaction is the kernel's struct sigaction: the same on amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// signals gives the command the dispositions and the mask of a fresh login.
// execve(2) resets handlers but keeps what is ignored and what is blocked, so a
// helper started under nohup would make every command deaf to HUP. By raw system
// calls: signal.Reset() costs milliseconds. Handlers of Go's runtime stay until
// execve.
func (p *process) signals() *spec.Failure {
	for sig := uintptr(1); sig <= lastSignal; sig++ {
		if sig == uintptr(unix.SIGKILL) || sig == uintptr(unix.SIGSTOP) {
			continue
		}
		var now sigaction
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0,
			uintptr(unsafe.Pointer(&now)), sigSetSize, 0, 0); errno != 0 {
			return failure(spec.StepSignals, "cannot read a signal's disposition", errno)
		}
		if now.handler != sigIgnore {
			continue
		}
		fresh := sigaction{handler: sigDefault}
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig,
			uintptr(unsafe.Pointer(&fresh)), 0, sigSetSize, 0, 0); errno != 0 {
			return failure(spec.StepSignals, "cannot reset a signal's disposition", errno)
		}
	}
	var none uint64
	if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&none)), 0, sigSetSize, 0, 0); errno != 0 {
		return failure(spec.StepSignals, "cannot clear the signal mask", errno)
	}
	return nil
}
