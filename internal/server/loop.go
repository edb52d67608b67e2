package server

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"sandboxd/internal/jail"
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
