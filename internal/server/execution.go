package server

import (
	"fmt"

	"sandboxd/internal/jail"
	"sandboxd/internal/policy"
	"sandboxd/protocol"
)

// current says whether id is the running execution's. A run whose result is out
// no longer counts, even if the loop has not heard of it yet.
func (l *loop) current(id uint64) bool {
	l.settle()
	return l.running && id == l.runID
}

// settle takes note of an execution that has ended.
func (l *loop) settle() {
	select {
	case <-l.freed:
		l.running = false
	default:
	}
}

func (l *loop) start(id uint64, b protocol.ExecStart) error {
	if l.settle(); l.running {
		l.fail(id, protocol.CodeBusy, "an execution is running under id %d; wait for its exec_exit or use another helper", l.runID)
		return nil
	}
	if n := l.stuck(); n >= maxLeftovers {
		return l.owe(id, protocol.ErrorBody{Code: protocol.CodeSpawnFailed, Msg: fmt.Sprintf("cannot start another execution: %d before it do not end; see which file system hangs, or use another helper", n)})
	}
	p, err := effective(l.base, b)
	if err != nil {
		return l.owe(id, protocol.ErrorBody{Code: protocol.CodeBadPolicy, Msg: brief(err.Error(), maxMessage)})
	}
	l.previous = l.run
	l.run, l.runID, l.running = l.runner.Start(jail.Request{Policy: p, Argv: b.Argv, Env: b.Env, Cwd: b.Cwd}, newSink(l, id)), id, true
	l.concluding.Add(1)
	go l.conclude(id, l.run, l.previous)
	return nil
}

// effective is the policy of one execution.
func effective(base protocol.Policy, b protocol.ExecStart) (protocol.Policy, error) {
	p := base
	if b.Policy != nil {
		var err error
		if p, err = policy.Decode(b.Policy); err != nil {
			return protocol.Policy{}, err
		}
	}
	if b.Limits != nil {
		limits, err := policy.DecodeLimits(b.Limits)
		if err != nil {
			return protocol.Policy{}, err
		}
		p.Limits = limits
	}
	return p, nil
}

// conclude writes the terminal frame. The helper is free before it is written,
// so a broker that starts the next command on reading it is never told busy;
// and what the execution before this one left is gone by then.
func (l *loop) conclude(id uint64, run, previous *jail.Run) {
	defer l.concluding.Done()
	<-run.Done()
	switch {
	case previous == nil:
	case l.settled(previous):
		l.note(previous)
	default:
		l.keep(previous)
	}
	l.freed <- run
	exit, fail := run.Result()
	var body protocol.Body
	if fail != nil {
		body = protocol.ErrorBody{Code: fail.Code, Msg: brief(fail.Msg, maxMessage)}
	} else {
		body = *exit
	}
	if err := l.out.Write(id, body); err != nil {
		l.lose(err)
	}
}

// lose tells the loop, without waiting for it, that stdout is gone.
func (l *loop) lose(err error) {
	select {
	case l.lost <- err:
	default:
	}
}

// sink writes one execution's output frames. Each stream has one pump, which
// reuses its body: a frame costs no allocation.
type sink struct {
	l         *loop
	id        uint64
	out, errs protocol.ExecOut
}

func newSink(l *loop, id uint64) *sink {
	return &sink{l: l, id: id, out: protocol.ExecOut{Stream: protocol.Stdout}, errs: protocol.ExecOut{Stream: protocol.Stderr}}
}

func (s *sink) Output(stream protocol.Stream, data []byte, total uint64, truncated bool) error {
	body := &s.out
	if stream == protocol.Stderr {
		body = &s.errs
	}
	body.Data, body.Bytes, body.Truncated = data, total, truncated
	err := s.l.out.WriteOut(s.id, body)
	if err != nil {
		s.l.lose(err)
	}
	return err
}
