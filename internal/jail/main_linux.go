package jail

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
	"sandboxd/protocol"
)

// Start begins one execution and returns at once.
func (h *Host) Start(req Request, sink Sink) *Run {
	r := newRun(req, sink)
	go h.launch(r)
	return r
}

// main is the whole life of one execution, in a standby's jail if there is one.
func (r *Run) main(h *Host, k *keeper) {
	defer close(r.released)
	if t := r.deadline(); t != nil {
		defer t.Stop()
	}
	for left := moveRetries; r.attempt(h, k, left > 0); left-- {
		k = nil
	}
}

// moveRetries is how often a jail is built anew at most.
const moveRetries = 20

// attempt makes one jail and runs the command in it. It is true where nothing ran and
// the host, where something came or went meanwhile, is to be looked at again.
func (r *Run) attempt(h *Host, k *keeper, more bool) (again bool) {
	built := r.impatience(h)
	j, err := h.prepare(r.req, k)
	defer func() { r.leftover = errors.Join(r.leftover, j.release()) }()
	if err == nil {
		j.thaw(r.stop)
	}
	var guarded guard
	if err == nil && r.stopReason() == NotStopped {
		guarded = lookAtGuarded(r.req.Policy)
	}
	if err != nil || r.stopReason() != NotStopped {
		if k != nil {
			k.discard()
			j.disown(k)
		}
		switch late := built(); {
		case late:
		case more && errors.Is(err, roots.ErrMoved) && r.stopReason() == NotStopped:
			return true
		case err != nil:
			r.finish(nil, asError(err, refused))
		default:
			r.finish(r.exitOf(j, nil, nil, r.neverStarted()), nil)
		}
		return false
	}
	p, err := j.process(r, k)
	switch late := built(); {
	case late && err == nil:
		r.leftover = errors.Join(r.leftover, p.scrap(h, j.killGroup))
		return false
	case late:
		return false
	case err != nil && more && !short(err) && r.stopReason() == NotStopped && (errors.Is(err, roots.ErrMoved) || errors.Is(err, errSmall) || r.moved(j)):
		return true
	case err != nil:
		r.finish(nil, asError(err, spawnFailed))
		return false
	}
	s := newSupervision(r, h, p)
	s.plan, s.reached = j.plan, j.reached
	exit, failed := r.supervise(s, j, guarded)
	j.built = s.built
	again = more && exit == nil && (!s.allowed || s.report == nil) && time.Since(r.start) < LaunchBound && (s.refused(failed) || r.moved(j))
	if !again {
		r.finish(exit, failed)
	}
	if !s.gather() {
		r.leftover = errors.Join(r.leftover, errUnended)
	}
	return again
}

// scrap ends a scaffolding that nothing will ever be executed in.
func (p *process) scrap(h *Host, group func()) (err error) {
	s := newSupervision(nil, h, p)
	s.group = group
	if p.jailed {
		s.kill()
	} else { // a stage 2 has no descendants, and orphans may be the next execution's
		p.signalGroup(unix.SIGKILL)
	}
	if !s.gather() {
		err = errUnended
	}
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr, p.report, p.messages} {
		f.Close()
	}
	return err
}

// unbuilt is the job of an execution that ends while the host is still being looked at.
func (h *Host) unbuilt(req Request) *job {
	j := &job{host: h, req: req, facts: h.Facts, noGroup: "the command was not started"}
	if j.jailed() {
		j.bwrap = &bwrap.Command{}
	}
	return j
}

// process is the standby's, or started now.
func (j *job) process(r *Run, k *keeper) (*process, error) {
	if k != nil {
		if p, ok, err := k.take(r, j); ok || err != nil {
			return p, err
		}
	}
	defer j.birth(r.stop, Grace)()
	return j.host.spawn(j)
}

// supervise runs from the spawned scaffolding to the result.
func (r *Run) supervise(s *supervision, j *job, guarded guard) (*protocol.ExecExit, *Error) {
	p := s.p
	s.group = j.killGroup
	limit := r.req.Policy.Limits.OutputBytes
	out := newPump(protocol.Stdout, p.stdout, r.sink, limit)
	errs := newPump(protocol.Stderr, p.stderr, r.sink, limit)
	text := collect(p.messages)
	fed := make(chan struct{})
	go out.run()
	go errs.run()
	go s.listen()
	if !p.jailed {
		s.harvested = make(chan struct{})
		go s.harvest()
	}
	running := false
	s.onExec = func() {
		running = true
		j.lowered()
		go func() { defer close(fed); r.stdin.pump(p.stdin) }() // not before: another jail may get it
	}

	s.watch()
	if !running {
		close(fed)
	}
	e := ended{}
	look := func() { e.found = append(s.lostMasks(), guarded.changed()...) }
	// Nobody is left who could change anything: no need to wait until init has noticed.
	alone := s.fail == nil && !s.stuck && s.p.initFD >= 0 && s.alone()
	if alone {
		look()
	}
	if s.fail == nil && !s.stuck {
		var known bool
		e.code, e.signal, known = s.status()
		s.unknown = !known
	} else if !s.stuck {
		s.kill()
	}
	s.tearDown(alone)
	if !alone {
		look()
	}
	s.hush()
	if running {
		r.stdin.close()
	}
	_ = p.stdin.Close()
	<-fed
	if s.cause != nil {
		s.awaitScaffolding(KillBound)
		s.fail = s.silence(s.cause, text.line())
	}
	text.end(0)
	if !r.drained(out, errs) {
		return nil, spawnFailed("cannot pass the output on: nobody reads it")
	}
	return r.conclude(s, j, out, errs, e)
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
	}
	if s.stuck || s.lingers {
		e.found = append(e.found, plan.Skip{Tag: "stage2", Reason: "a process of the command did not die after SIGKILL"})
	}
	if s.unknown {
		e.found = append(e.found, plan.Skip{Tag: "stage2", Reason: "how the command ended is not known: what started it does not end"})
	}
	e.stopped, e.report = s.stopped, s.report
	return r.exitOf(j, out, errs, e), nil
}
