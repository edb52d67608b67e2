//go:build linux || darwin

package jail

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/report"
	"sandboxd/protocol"
)

var errUnended = errors.New("a process of the execution could not be ended")

func asError(err error, kind func(string, ...any) *Error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var ref *plan.Refusal
	if errors.As(err, &ref) {
		return refused("%s", ref.Error())
	}
	if short(err) {
		kind = spawnFailed
	}
	return kind("%s", err.Error())
}

// short tells a host that has run out of something from a policy that it cannot
// honour. It is spawn_failed at whatever moment it shows.
func short(err error) bool {
	for _, e := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS, unix.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// drained waits until the tails are passed on, or the sink is given up.
func (r *Run) drained(pumps ...*pump) bool {
	for _, p := range pumps {
		p.finish()
	}
	for _, p := range pumps {
		select {
		case <-p.done:
		case <-r.given:
			return false
		}
	}
	return true
}

// finish sets the result and frees the helper for the next execution.
func (r *Run) finish(x *protocol.ExecExit, err *Error) {
	r.stdin.close()
	r.exit, r.err = x, err
	close(r.done)
}

// neverStarted is the end of a command that was stopped before it could run.
func (r *Run) neverStarted() ended {
	return ended{code: 128 + int(unix.SIGTERM), signal: int(unix.SIGTERM), stopped: r.stopReason()}
}

// exitOf puts the terminal frame together.
func (r *Run) exitOf(j *job, out, errs *pump, e ended) *protocol.ExecExit {
	o := j.outcome(e)
	x := &protocol.ExecExit{
		Code: e.code, Signal: e.signal,
		Enforcement: report.Entries(o), Degraded: !o.Jailed,
		WallMS:    r.wall(),
		TimedOut:  e.stopped == Deadline,
		Cancelled: e.stopped != NotStopped,
	}
	if out != nil {
		x.StdoutBytes, x.StdoutTruncated = out.sent, out.truncated
		x.StderrBytes, x.StderrTruncated = errs.sent, errs.truncated
	}
	return x
}

// unheard says whether a report's descriptor has a message or its end to be read, or
// its reader has queued some, or is through. A helper that was stopped, or got no
// processor, finds its timers expired together with everything that came in time.
func unheard(report *os.File, queued int) bool {
	c, err := report.SyscallConn()
	if err != nil {
		return true
	}
	waits := true // where the descriptor was closed by its reader
	_ = c.Control(func(fd uintptr) {
		ev, err := pollOnce(int(fd), unix.POLLIN, 0)
		waits = queued > 0 || err == nil && ev != 0
	})
	return waits
}

// pollOnce polls one descriptor; timeout in milliseconds, negative for none.
func pollOnce(fd int, events int16, timeout int) (int16, error) {
	for {
		p := []unix.PollFd{{Fd: int32(fd), Events: events}}
		_, err := unix.Poll(p, timeout)
		if err == unix.EINTR {
			continue
		}
		return p[0].Revents, err
	}
}
