//go:build unix

package cli

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/selftest"
)

// watched are the signals that reach the command through run. SIGPIPE is among them
// so that a reader who goes away is an error of a write: the jail is then taken down
// before run ends.
var watched = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGPIPE}

func meaning(s os.Signal) request {
	switch s {
	case syscall.SIGPIPE:
		return nothing
	case syscall.SIGTSTP:
		return toPause
	case syscall.SIGQUIT:
		return toKill
	}
	return toEnd
}

// pause stops the command's processes, then this one as SIGTSTP would have, and
// continues the command when it is continued itself. The helper goes on: it has the
// jail to watch, and wall clock time is wall clock time. An orphaned process group is
// not stopped, by the kernel's own rule (setpgid(2)): nobody could continue it.
func pause() {
	if orphaned() {
		return
	}
	stopped := signalJail(unix.SIGSTOP, nil)
	stopSelf()
	signalJail(unix.SIGCONT, stopped)
}

// foregroundOnly reads a terminal only while its foreground is this process's group:
// a read in the background would stop `sandboxd run -- make &` at once, though make
// itself reads nothing.
func foregroundOnly(r io.Reader) io.Reader {
	f, ok := r.(*os.File)
	switch {
	case !ok:
		return r
	case windowWidth(f) < 0:
		return &patientInput{f}
	}
	return &terminalInput{f}
}

// patientInput is to what is read as patient is to what is written.
type patientInput struct{ f *os.File }

func (p *patientInput) Read(b []byte) (int, error) {
	for {
		n, err := p.f.Read(b)
		if n > 0 || !errors.Is(err, unix.EAGAIN) || !happens(p.f, unix.POLLIN) {
			return n, err
		}
	}
}

type terminalInput struct{ f *os.File }

// backgroundPoll is how often a job in the background asks whether it has come to the
// front.
const backgroundPoll = 200 * time.Millisecond

func (t *terminalInput) Read(b []byte) (int, error) {
	for {
		front, err := unix.IoctlGetInt(int(t.f.Fd()), unix.TIOCGPGRP)
		if err != nil {
			return t.f.Read(b) // not our controlling terminal: its reads stop nobody
		}
		if front == unix.Getpgrp() && readable(t.f) {
			return t.f.Read(b)
		}
		if front != unix.Getpgrp() {
			time.Sleep(backgroundPoll)
		}
	}
}

// readable waits a moment for input, so that the foreground is asked for again.
func readable(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, int(backgroundPoll/time.Millisecond))
	return err == nil && n > 0
}

// takes waits until something can be written, and says whether that can be waited for.
func takes(w io.Writer) bool {
	f, ok := file(w)
	return ok && happens(f, unix.POLLOUT)
}

// happens waits for an event of poll(2), and says whether that can be waited for.
func happens(f *os.File, event int16) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		_, failed = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: event}}, -1)
	})
	return err == nil && (failed == nil || failed == unix.EINTR)
}

// windowWidth gives a terminal's columns, 0 where it does not know them, and -1 for
// what is no terminal: only one has a window size (tty_ioctl(4)).
func windowWidth(f *os.File) int {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return -1
	}
	return int(ws.Col)
}

// closedStreams says whether standard output, and whether it and standard error, were
// closed when this process started. Go's runtime has put /dev/null in their place, open for
// both ways, which others do to discard a stream: who discards standard output alone cannot
// be told from who closed it; who discards both opens it once, or standard input (for
// reading) as well.
func closedStreams(in, out, errs *os.File) (output, both bool) {
	output = selftest.Replaced(out)
	both = output && selftest.Replaced(errs) && !sameOpening(out, errs) && !discarded(in)
	return output, both
}

// discarded says whether f is /dev/null, open for reading only.
func discarded(f *os.File) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	var st, null unix.Stat_t
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDONLY && unix.Fstat(int(f.Fd()), &st) == nil &&
		unix.Stat(os.DevNull, &null) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == null.Rdev
}
