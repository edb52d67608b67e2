package server

import (
	"bytes"
	"fmt"

	"sandboxd/internal/jail"
	"sandboxd/protocol"
)

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

// stdin passes bytes on. It waits only while the queue is full: the frames
// behind it wait too, so the wait also ends with the execution, on a signal, and
// when the broker hangs up.
func (l *loop) stdin(id uint64, in jail.Input, eof bool) error {
	stop := make(chan struct{})
	defer close(stop)
	var hangup <-chan struct{}
	for {
		if !l.current(id) {
			l.fail(id, protocol.CodeNoExec, "no execution is running under id %d", id)
			return nil
		}
		space := l.run.StdinSpace()
		taken, err := l.run.Stdin(in, eof)
		if err != nil {
			l.fail(id, protocol.CodeNoExec, "%s", err)
		}
		if taken || err != nil {
			return nil
		}
		if hangup == nil && l.hangup != nil {
			hangup = l.hangup(stop)
		}
		select {
		case <-space:
		case <-l.freed: // the execution has ended
			l.running = false
		case <-l.signals:
			return errOrderly
		case <-hangup:
			return errOrderly
		case err := <-l.lost:
			return fmt.Errorf("cannot write a frame: %w", err)
		}
	}
}
