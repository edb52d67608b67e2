package jail

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/seatbelt"
	"sandboxd/protocol"
)

// Start begins one execution and returns at once.
func (h *Host) Start(req Request, sink Sink) *Run {
	r := newRun(req, sink)
	go r.main(h)
	return r
}

// main is the whole life of one execution.
func (r *Run) main(h *Host) {
	defer close(r.released)
	if t := r.deadline(); t != nil {
		defer t.Stop()
	}
	built := r.impatience(h)
	j, err := h.prepare(r.req)
	defer func() { r.leftover = errors.Join(r.leftover, j.release()) }()
	var guarded guard
	if err == nil && r.stopReason() == NotStopped {
		guarded = lookAtGuarded(r.req.Policy)
	}
	if err != nil || r.stopReason() != NotStopped {
		switch late := built(); {
		case late:
		case err != nil:
			r.finish(nil, asError(err, refused))
		default:
			r.finish(r.exitOf(j, nil, nil, r.neverStarted()), nil)
		}
		return
	}
	p, err := h.spawn(j)
	switch late := built(); {
	case late && err == nil:
		r.leftover = errors.Join(r.leftover, p.scrap())
	case late:
	case err != nil:
		r.finish(nil, asError(err, spawnFailed))
	default:
		r.supervise(newSupervision(r, p), j, guarded)
	}
}

// unbuilt is the job of an execution that ends while the host is still being looked at.
func (h *Host) unbuilt(req Request) *job {
	j := &job{host: h, req: req, facts: h.Facts}
	if j.jailed() {
		j.profile = &seatbelt.Profile{}
	}
	return j
}

// supervise runs from the spawned process to the result.
func (r *Run) supervise(s *supervision, j *job, guarded guard) {
	p := s.p
	limit := r.req.Policy.Limits.OutputBytes
	out := newPump(protocol.Stdout, p.stdout, r.sink, limit)
	errs := newPump(protocol.Stderr, p.stderr, r.sink, limit)
	fed := make(chan struct{})
	go out.run()
	go errs.run()
	go func() { defer close(fed); r.stdin.pump(p.stdin) }()

	s.onReport = func() { r.leftover = errors.Join(r.leftover, j.removeProfile()) } // it has been read
	s.watch()
	ws, known := s.gather()
	r.stdin.close()
	_ = p.stdin.Close()
	<-fed
	text := s.printed()
	if s.cause != nil && errors.Is(s.cause, errEndOfReport) {
		code, _ := status(ws, known)
		who := "seatbelt"
		if j.profile == nil {
			who = "stage2"
		}
		s.fail = spawnFailed("%s: %s; `sandboxd doctor` says what this host lacks", who, seatbelt.Launch(code, text))
	}
	if !r.drained(out, errs) {
		r.finish(nil, spawnFailed("cannot pass the output on: nobody reads it"))
		return
	}
	r.finish(r.conclude(s, j, out, errs, ended{found: guarded.changed()}, ws, known))
}

// conclude is the terminal frame of a spawned execution.
func (r *Run) conclude(s *supervision, j *job, out, errs *pump, e ended, ws syscall.WaitStatus, known bool) (*protocol.ExecExit, *Error) {
	switch {
	case s.fail != nil && (s.stopped != NotStopped || s.cause != nil && r.stopReason() != NotStopped):
		never := r.neverStarted()
		if s.stuck {
			never.found = []plan.Skip{undying}
		}
		return r.exitOf(j, out, errs, never), nil
	case s.fail != nil:
		return nil, s.fail
	}
	e.stopped, e.report = s.stopped, s.report
	e.code, e.signal = status(ws, known)
	switch {
	case s.stuck:
		e.signal = int(unix.SIGKILL)
		e.found = append(e.found, undying)
	case !known:
		e.found = append(e.found, plan.Skip{Tag: protocol.TagStage2, Reason: "how the command ended is not known: it could not be reaped"})
	}
	return r.exitOf(j, out, errs, e), nil
}

var undying = plan.Skip{Tag: protocol.TagStage2, Reason: "a process of the command did not die after SIGKILL"}

// status is the process's own end; the code of one that is not known is KILL's.
func status(ws syscall.WaitStatus, known bool) (code, signal int) {
	switch {
	case !known:
		return 128 + int(unix.SIGKILL), 0
	case ws.Signaled():
		return 128 + int(ws.Signal()), int(ws.Signal())
	}
	return ws.ExitStatus(), 0
}
