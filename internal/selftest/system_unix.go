//go:build unix

package selftest

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// interruptible ends with the first signal that asks for an end; the helpers are then
// shut down and the fixture removed. The second one has its default effect: what it
// leaves on the disk, the next run sweeps. A signal that was ignored from the start
// (nohup(1), a job of a script) stays ignored.
func interruptible() (context.Context, func()) {
	// Where nobody listens, the Go runtime ends the process at a write to a closed
	// pipe, before any clean-up. A pipe to a helper may break without being the end.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	ends := slices.DeleteFunc([]os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}, signal.Ignored)
	if len(ends) == 0 { // which Notify takes for all signals
		return context.Background(), func() { signal.Stop(pipe) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	context.AfterFunc(ctx, stop)
	return ctx, func() {
		stop()
		signal.Stop(pipe)
	}
}

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// free says whether nobody holds the lock on a file that is there.
func free(path string) bool {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil
}

// IsTerminal says whether f is a terminal: only one has a window size (tty_ioctl(4)).
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// Closed says whether standard output was closed when this process started, and
// somebody could still read that on standard error. Go's runtime has put /dev/null, open
// for both, in its place, and would take the result without an error. Who discards both
// streams wants the exit code alone; who discards one opens /dev/null for writing.
func Closed(stdout, stderr *os.File) bool { return Replaced(stdout) && !Replaced(stderr) }

// Replaced says whether f is /dev/null as the runtime opens it in the place of a stream
// that was closed when this process started. Others open it like that as well.
func Replaced(f *os.File) bool {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		return false
	}
	var st, null unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && unix.Stat(os.DevNull, &null) == nil &&
		st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == null.Rdev
}
