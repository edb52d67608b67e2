package jail

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/report"
	"sandboxd/protocol"
)

// Start begins one execution and returns at once.
func (h *Host) Start(req Request, sink Sink) *Run {
	r := newRun(req, sink)
	go r.main(h)
	return r
}

// main is the whole life of one execution. Its thread is the parent of the
// scaffolding, whose parent-death signal follows that thread.
func (r *Run) main(h *Host) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(r.released)
	if t := r.deadline(); t != nil {
		defer t.Stop()
	}
	j, err := h.prepare(r.req)
	defer func() { r.leftover = errors.Join(r.leftover, j.release()) }()
	if err != nil {
		r.finish(nil, asError(err, refused))
		return
	}
	if r.stopReason() != NotStopped {
		r.finish(r.exitOf(j, nil, nil, r.neverStarted()), nil)
		return
	}
	p, err := h.spawn(j)
	if err != nil {
		r.finish(nil, asError(err, spawnFailed))
		return
	}
	s := newSupervision(r, h, p)
	s.plan, s.onExec = j.plan, j.lowered
	r.supervise(s, j)
	if !s.gather() {
		r.leftover = fmt.Errorf("a process of the execution could not be ended")
	}
}

func asError(err error, kind func(string, ...any) *Error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var ref *plan.Refusal
	if errors.As(err, &ref) {
		return refused("%s", ref.Error())
	}
	return kind("%s", err.Error())
}

// supervise runs from the spawned scaffolding to the result.
func (r *Run) supervise(s *supervision, j *job) {
	p := s.p
	limit := r.req.Policy.Limits.OutputBytes
	out := newPump(protocol.Stdout, p.stdout, r.sink, limit)
	errs := newPump(protocol.Stderr, p.stderr, r.sink, limit)
	text := collect(p.messages)
	fed := make(chan struct{})
	go out.run()
	go errs.run()
	go s.listen()
	go func() { defer close(fed); r.stdin.pump(p.stdin) }()

	s.watch()
	e := ended{}
	if s.fail == nil && !s.stuck {
		e.code, e.signal = s.status()
	} else {
		s.kill()
	}
	s.tearDown()
	e.found = s.lostMasks()
	s.hush()
	r.stdin.close()
	_ = p.stdin.Close()
	<-fed
	if s.cause != nil {
		s.awaitScaffolding(KillBound)
		s.fail = s.silence(s.cause, text.line())
	}
	text.end(0)
	if !r.drained(out, errs) {
		r.finish(nil, spawnFailed("cannot pass the output on: nobody reads it"))
		return
	}
	r.finish(r.conclude(s, j, out, errs, e))
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

// conclude is the terminal frame of a spawned execution.
func (r *Run) conclude(s *supervision, j *job, out, errs *pump, e ended) (*protocol.ExecExit, *Error) {
	switch {
	case s.fail != nil && (s.stopped != NotStopped || s.cause != nil && r.stopReason() != NotStopped):
		never := r.neverStarted() // the ladder's KILL met a jail that was not ready
		never.found = e.found
		return r.exitOf(j, out, errs, never), nil
	case s.fail != nil:
		return nil, s.fail
	case s.stuck:
		e.code, e.signal = 128+int(unix.SIGKILL), int(unix.SIGKILL)
		e.found = append(e.found, plan.Skip{Tag: "stage2", Reason: "a process of the command did not die after SIGKILL"})
	}
	e.stopped, e.report = s.stopped, s.report
	return r.exitOf(j, out, errs, e), nil
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
