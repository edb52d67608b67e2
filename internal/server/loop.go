package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"sandboxd/internal/jail"
	"sandboxd/internal/policy"
	"sandboxd/protocol"
)

// Runner starts executions; *jail.Host is the real one.
type Runner interface {
	Start(req jail.Request, sink jail.Sink) *jail.Run
	Ready(p protocol.Policy) // an execution under p is likely to come
	Close() error            // none will come; what could not be taken away again
}

// loop is one conversation.
type loop struct {
	in      *protocol.Reader
	out     *protocol.Writer
	replies *replies
	runner  Runner
	base    protocol.Policy
	peer    string // version of this helper
	feature []string

	signals <-chan struct{} // closed: stop in an orderly way
	hangup  func(stop <-chan struct{}) <-chan struct{}

	frames <-chan incoming
	early  []incoming // came before the host was looked at

	greeted  bool
	run      *jail.Run // the running or last execution
	runID    uint64
	running  bool
	freed    chan *jail.Run
	ending   chan struct{} // closed: the conversation is over
	previous *jail.Run     // whose release is still to be joined
	lost     chan error

	concluding sync.WaitGroup // terminal frames that are still to be written

	mu   sync.Mutex
	kept error       // what the runner left behind
	left []*jail.Run // executions that left something behind
	late []*jail.Run // executions that were not released in time
}

// incoming is what the reading goroutine hands over.
type incoming struct {
	frame protocol.Frame
	input jail.Input // an exec_stdin's data
	err   error
}

// errOrderly ends the loop with exit 0.
var errOrderly = errors.New("orderly end")

// serve speaks until shutdown, the end of stdin, a signal or a broken channel.
func (l *loop) serve() error {
	l.freed, l.lost, l.ending = make(chan *jail.Run, 1), make(chan error, 4), make(chan struct{})
	go l.replies.write(l.out, l.lose)
	l.replies.put(1, protocol.Hello{Proto: protocol.ExecVersion, Peer: l.peer, Features: l.feature})
	if l.frames == nil {
		l.frames = l.read()
	}
	if err := l.replay(); err != nil {
		return l.end(err)
	}
	for {
		select {
		case in := <-l.frames:
			if err := l.receive(in); err != nil {
				return l.end(err)
			}
		case <-l.signals:
			return l.end(errOrderly)
		case err := <-l.lost:
			return l.end(fmt.Errorf("cannot write a frame: %w", err))
		case <-l.freed:
			l.running = false
		}
	}
}

// read decodes frames on a goroutine of its own, so that the loop also hears
// signals. It ends with the first error that closes the channel.
func (l *loop) read() <-chan incoming {
	frames := make(chan incoming)
	go func() {
		for {
			f, err := l.in.Next()
			in := incoming{frame: f, err: err}
			if b, ok := f.Body.(protocol.ExecStdin); ok {
				in.input = l.hold(b.Data)
				b.Data = in.input.Data
				in.frame.Body = b
			}
			frames <- in
			var de *protocol.DecodeError
			if err != nil && (!errors.As(err, &de) || de.Fatal) {
				return
			}
		}
	}()
	return frames
}

// bigInput is from how many bytes on stdin takes the reader's buffer along instead of
// being copied out of it.
const bigInput = 16 << 10

// hold makes stdin outlast the next frame: the queue keeps it. A buffer that is not
// half full is not kept with it: little input must not hold much memory.
func (l *loop) hold(data []byte) jail.Input {
	if len(data) >= bigInput {
		if b := l.in.Swap(2*len(data), jail.Spare); b != nil {
			return jail.Input{Data: data, Buffer: b}
		}
	}
	return jail.Input{Data: bytes.Clone(data)}
}

// maxMessage bounds what a message tells, in bytes: a peer's own words must not
// come back as a frame that cannot be written.
const maxMessage = 8 << 10

func (l *loop) fail(id uint64, code protocol.Code, format string, args ...any) {
	l.replies.put(id, protocol.ErrorBody{Code: code, Msg: brief(fmt.Sprintf(format, args...), maxMessage)})
}

// owe answers an exec_start while nothing runs: the loop may then wait for a broker to
// read, as long as there is one.
func (l *loop) owe(id uint64, body protocol.Body) error {
	stop := make(chan struct{})
	defer close(stop)
	var gone <-chan struct{}
	for !l.replies.put(id, body) {
		if gone == nil && l.hangup != nil {
			gone = l.hangup(stop)
		}
		select {
		case <-l.replies.room:
		case <-gone:
			return nil
		case <-l.signals:
			return errOrderly
		case err := <-l.lost:
			return fmt.Errorf("cannot write a frame: %w", err)
		}
	}
	return nil
}

// brief cuts a text between two runes.
func brief(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// receive handles one frame, or the error that came in its place. An error of
// its own ends the conversation.
func (l *loop) receive(in incoming) error {
	var de *protocol.DecodeError
	switch {
	case errors.Is(in.err, io.EOF):
		return errOrderly
	case errors.As(in.err, &de) && !de.Fatal && de.ID != 0:
		if !l.greeted && de.Kind != protocol.KindHello {
			return l.ungreeted(de.ID, de.Kind)
		}
		l.fail(de.ID, protocol.CodeMalformedFrame, "%s", de)
		if de.Kind == protocol.KindHello {
			return errors.New("the broker's hello is malformed")
		}
		return nil
	case in.err != nil:
		l.fail(0, protocol.CodeMalformedFrame, "%s", in.err)
		return in.err
	}
	f := in.frame
	if f.ID == 0 { // an error's, which only a helper may send
		l.fail(0, protocol.CodeMalformedFrame, "%q came under id 0; use another id", f.Kind)
		return errors.New("a frame came under id 0")
	}
	if h, ok := f.Body.(protocol.Hello); ok {
		return l.hello(f.ID, h)
	}
	if !l.greeted {
		return l.ungreeted(f.ID, f.Kind)
	}
	return l.dispatch(in)
}

func (l *loop) ungreeted(id uint64, kind protocol.Kind) error {
	l.fail(id, protocol.CodeProtoMismatch, "%q came before hello; send hello with proto %d first", brief(string(kind), 64), protocol.ExecVersion)
	return errors.New("a frame came before hello")
}

func (l *loop) hello(id uint64, h protocol.Hello) error {
	switch {
	case h.Proto != protocol.ExecVersion:
		l.fail(id, protocol.CodeProtoMismatch, "this helper speaks exec protocol %d, the broker %d; use matching versions", protocol.ExecVersion, h.Proto)
		return fmt.Errorf("the broker speaks exec protocol %d, not %d", h.Proto, protocol.ExecVersion)
	case l.greeted:
		l.fail(id, protocol.CodeMalformedFrame, "hello came twice; send it once")
		return nil
	}
	l.greeted = true
	if l.runner != nil {
		l.runner.Ready(l.base)
	}
	return nil
}

func (l *loop) dispatch(in incoming) error {
	f := in.frame
	switch b := f.Body.(type) {
	case protocol.ExecStart:
		return l.start(f.ID, b)
	case protocol.ExecStdin:
		return l.stdin(f.ID, in.input, b.EOF)
	case protocol.Cancel:
		if l.current(f.ID) {
			l.run.Stop(jail.Cancelled)
		}
	case protocol.Heartbeat:
		l.replies.put(f.ID, protocol.Heartbeat{})
	case protocol.Shutdown:
		return errOrderly
	default:
		l.fail(f.ID, protocol.CodeUnknownKind, "kind %q is not one that this helper takes", brief(string(f.Kind), 64))
	}
	return nil
}

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
