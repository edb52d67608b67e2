package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"sandboxd/protocol"
)

// send encodes a frame and hands it to the writer. It does not wait for the write.
func (h *Helper) send(ctx context.Context, id uint64, body protocol.Body) error {
	return h.sendNoting(ctx, id, body, nil)
}

// sendNow waits for the write too: a pipe that the helper does not empty takes a
// while, or for ever.
func (h *Helper) sendNow(ctx context.Context, id uint64, body protocol.Body) error {
	written := make(chan struct{}, 1)
	if err := h.sendNoting(ctx, id, body, written); err != nil {
		return err
	}
	select {
	case <-written:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *Helper) sendNoting(ctx context.Context, id uint64, body protocol.Body, written chan<- struct{}) error {
	frame, err := protocol.AppendFrame(nil, id, body)
	if err != nil {
		return fmt.Errorf("cannot send %s: %w", body.Kind(), err)
	}
	select {
	case h.control <- outgoing{frame, written}:
		return nil
	case <-h.stop:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writeLoop is the only writer. Stdin waits for everything else, so that a cancel
// is behind one chunk at most. A failed write is not an error of its own: the read
// loop sees the helper's end and knows why.
func (h *Helper) writeLoop() {
	defer h.link.in.Close()
	for {
		var o outgoing
		select {
		case o = <-h.control:
		default:
			select {
			case o = <-h.control:
			case o = <-h.stdin:
			case <-h.stop:
				return
			}
		}
		h.link.in.Write(o.frame)
		if o.written != nil {
			o.written <- struct{}{}
		}
	}
}

func (h *Helper) readLoop() {
	defer h.settle()
	r := protocol.NewReader(h.link.out)
	err := h.readHello(r)
	for err == nil {
		var f protocol.Frame
		if f, err = r.Next(); err == nil {
			err = h.handle(f)
		}
	}
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return
	}
	h.fail(err)
	h.hangUp()
	io.Copy(io.Discard, h.link.out) // a helper that is ending must not block on us
}

func (h *Helper) readHello(r *protocol.Reader) error {
	f, err := r.Next()
	if err != nil {
		return err
	}
	if e, ok := f.Body.(protocol.ErrorBody); ok {
		return &Error{Code: e.Code, Msg: e.Msg}
	}
	hello, ok := f.Body.(protocol.Hello)
	if !ok {
		return fmt.Errorf("%w: its first frame is %q, not a hello", ErrProtocol, f.Kind)
	}
	h.hello <- hello
	return nil
}

// fail records why the channel failed; the first reason stays.
func (h *Helper) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.chanErr != nil || h.killed && (errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe)) { // closed here
		return
	}
	var bad *protocol.DecodeError
	if errors.As(err, &bad) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	h.chanErr = err
}

// handle acts on one frame; an error ends the channel. Frames of kinds that this
// client does not know, and late answers to what is over, are passed by.
func (h *Helper) handle(f protocol.Frame) error {
	switch body := f.Body.(type) {
	case protocol.Heartbeat:
		h.beat(f.ID)
	case protocol.ExecOut:
		if err := h.due(f, false); err != nil {
			return err
		}
		if e := h.execution(f.ID); e != nil {
			return e.output(body)
		}
	case protocol.ExecExit:
		if err := h.due(f, true); err != nil {
			return err
		}
		if e := h.execution(f.ID); e != nil {
			return e.exited(body)
		}
	case protocol.ErrorBody:
		return h.errorFrame(f.ID, &Error{Code: body.Code, Msg: body.Msg})
	}
	return nil
}

// due refuses a frame of an execution that was never asked for, or has had its exit:
// executions come one after another, under rising ids. One that this client has given
// up may still be told of.
func (h *Helper) due(f protocol.Frame, last bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.ID > h.next || f.ID <= h.exited {
		return fmt.Errorf("%w: %s for execution %d, which does not run", ErrProtocol, f.Kind, f.ID)
	}
	if last {
		h.exited = f.ID
	}
	return nil
}

func (h *Helper) errorFrame(id uint64, err *Error) error {
	switch err.Code {
	case protocol.CodeProtoMismatch:
		return err
	case protocol.CodeMalformedFrame:
		if id == 0 {
			return err
		}
	case protocol.CodeNoExec:
		if e := h.execution(id); e != nil {
			e.closeInput()
		}
		return nil
	}
	// Every other code answers an exec_start that was not, or is no longer, accepted:
	// ids are never used twice, so busy under this id cannot mean a running one.
	if e := h.execution(id); e != nil && h.forget(id) {
		e.finish(nil, err)
	}
	return nil
}

func (h *Helper) beat(id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if beat, ok := h.beats[id]; ok {
		close(beat)
		delete(h.beats, id)
	}
}

func (h *Helper) execution(id uint64) *Execution {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.execs[id]
}

// forget says whether the execution was still known: its end is told once.
func (h *Helper) forget(id uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, known := h.execs[id]
	delete(h.execs, id)
	return known
}
