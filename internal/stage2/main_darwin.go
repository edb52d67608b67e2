package stage2

import (
	"encoding/binary"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// Main is the role `--exec` under sandbox-exec, which has applied the profile to this
// process already. It returns only when the command does not run: with 2 when its
// descriptors are not those of a stage 2, else with 1.
func Main() int {
	return begin()
}

// reportType is the kind of fd 4: a local socket of macOS has no SOCK_SEQPACKET.
const reportType = unix.SOCK_STREAM

// process is what the steps share.
type process struct {
	spec   spec.Spec
	report spec.Report
	binary string // argv[0] resolved
}

// run makes the steps in their order. It returns what failed, or nil when the helper
// is gone and nobody is left to run anything for.
func run() *spec.Failure {
	s, f := readSpec()
	if f != nil {
		return f
	}
	p := &process{spec: s}
	for _, step := range []func() *spec.Failure{
		p.session,
		p.seatbelt, // first: without a profile nothing else here means what it says
		p.chdir,
		p.lookup,
		p.verify,
		p.rlimits,
		p.signals,
		p.descriptors,
		p.require,
	} {
		if f := step(); f != nil {
			return f
		}
	}
	if !send(p.report.Append(nil)) || !allowed() || hungUp() {
		return nil
	}
	err := syscall.Exec(p.binary, s.Argv, s.Env)
	return failure(spec.StepExec, "cannot execute "+strconv.Quote(p.binary), err)
}

// send writes one message to the helper, its length in four bytes first; false means
// that nobody reads it.
func send(msg []byte) bool {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(msg)))
	for b = append(b, msg...); len(b) > 0; {
		n, err := unix.Write(spec.ReportFD, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return false
		}
		b = b[n:]
	}
	return true
}

// hungUp says whether the helper has died: nothing else ends stage 2 with it.
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

// setMask is SIG_SETMASK of sigprocmask(2).
const setMask = 3

// signals gives the command default dispositions and an empty mask: what is ignored stays
// ignored over execve(2), what is handled does not, and the mask of the thread that calls
// it stays too. From here on this process is deaf to them, so the helper sends none before
// the command runs.
func (p *process) signals() *spec.Failure {
	runtime.LockOSThread() // to the end: that thread calls execve
	var none uint32
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
		return failure(spec.StepSignals, "cannot clear the signal mask", errno)
	}
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGALRM, unix.SIGTERM,
		unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCHLD, unix.SIGUSR1, unix.SIGUSR2, unix.SIGXCPU, unix.SIGXFSZ, unix.SIGWINCH)
	return nil
}

// descriptors moves the command's streams into place and marks everything above them
// close-on-exec, fd 4 too: its end of file is when the helper asks about execve.
func (p *process) descriptors() *spec.Failure {
	for fd := 0; fd <= 2; fd++ {
		if err := unix.Dup2(spec.StdinFD+fd, fd); err != nil {
			return failure(spec.StepDescriptors, "cannot put the command's streams in place", err)
		}
	}
	// There is no close_range; /dev/fd lists what is open.
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		return failure(spec.StepDescriptors, "cannot list the open descriptors", err)
	}
	for _, n := range names {
		fd, err := strconv.Atoi(n.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil && err != unix.EBADF {
			return failure(spec.StepDescriptors, "cannot mark descriptors close-on-exec", err)
		}
	}
	return nil
}
