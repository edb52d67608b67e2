package broker

import (
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"sandboxd/protocol"
)

// fake is a helper in memory: a script speaks the other side of the channel. It
// stands in for the process only; the frames are real.
type fake struct {
	t      *testing.T
	r      *protocol.Reader
	w      *protocol.Writer
	in     *io.PipeReader // the client's frames
	out    *io.PipeWriter
	killed chan struct{}
	once   sync.Once
	nudged chan struct{} // an Interrupt came
	exit   error         // what Wait gives after an orderly end
	ended  chan struct{}
	stays  chan struct{} // not nil: no signal ends it before this is closed
}

func (f *fake) Wait() error {
	if f.stays != nil {
		<-f.stays
	}
	select {
	case <-f.ended:
	case <-f.killed:
	}
	select {
	case <-f.killed:
		return &ExitError{Status: -1, Cause: "signal: killed"}
	default:
		return f.exit
	}
}

func (f *fake) Interrupt() error {
	select {
	case f.nudged <- struct{}{}:
	default:
	}
	return nil
}

func (f *fake) Kill() error {
	if f.stays != nil {
		return nil
	}
	f.once.Do(func() {
		close(f.killed)
		f.out.CloseWithError(io.EOF)
		f.in.CloseWithError(os.ErrClosed)
	})
	return nil
}

// script runs a fake helper: it greets, then does what the function does, then ends.
func script(t *testing.T, o Options, features []string, do func(f *fake)) (*Helper, *fake, error) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	f := &fake{
		t: t, r: protocol.NewReader(inR), w: protocol.NewWriter(outW), in: inR, out: outW,
		killed: make(chan struct{}), nudged: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go func() {
		defer close(f.ended)
		defer f.in.Close()
		defer f.out.Close()
		if features != nil {
			f.say(1, protocol.Hello{Proto: protocol.ExecVersion, Peer: "fake", Features: features})
			if _, ok := f.next().Body.(protocol.Hello); !ok {
				t.Error("the client does not answer the hello")
				return
			}
		}
		do(f)
	}()
	if o.Policy == nil {
		o.Policy = &protocol.Policy{Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	}
	o.Path = "fake"
	h, err := open(t.Context(), o.withDefaults(), &link{proc: f, in: inW, out: outR})
	return h, f, err
}

// start is script for helpers that greet well.
func start(t *testing.T, o Options, do func(f *fake)) *Helper {
	t.Helper()
	h, _, err := script(t, o, []string{protocol.TagBwrap, protocol.TagLandlock}, do)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// next reads the client's next frame; a hang-up gives a frame without a kind.
func (f *fake) next() protocol.Frame {
	fr, err := f.r.Next()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		f.t.Errorf("the client's frame: %v", err)
	}
	return fr
}

func (f *fake) say(id uint64, body protocol.Body) { f.w.Write(id, body) }

// begin reads an exec_start.
func (f *fake) begin() (uint64, protocol.ExecStart) {
	fr := f.next()
	s, ok := fr.Body.(protocol.ExecStart)
	if !ok {
		f.t.Errorf("got %q, want exec_start", fr.Kind)
	}
	return fr.ID, s
}

// until reads frames up to one of the kind and returns those before it.
func (f *fake) until(kind protocol.Kind) (before []protocol.Frame) {
	for {
		fr := f.next()
		if fr.Kind == kind || fr.Kind == "" {
			return before
		}
		before = append(before, fr)
	}
}

// drain reads to the hang-up.
func (f *fake) drain() { f.until("") }

// within fails a test whose part hangs; it is no measure.
func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s did not happen", what)
	}
}
