package broker

import (
	"errors"
	"fmt"
	"io"

	"sandboxd/protocol"
)

// Write sends bytes to the command's standard input, for Command.OpenStdin. It
// returns when the frames are written to the helper, which says nothing about the
// command having read them. ErrStdinClosed: the command closed its input or ended.
//
// Keep what the command has not read below 16 MiB: beyond that the helper waits for
// the command, and a cancel then ends the helper too.
func (e *Execution) Write(p []byte) (int, error) {
	sent := 0
	for len(p) > 0 {
		n := min(len(p), stdinChunk)
		if err := e.sendCopy(p[:n], false); err != nil {
			return sent, err
		}
		sent, p = sent+n, p[n:]
	}
	return sent, nil
}

// CloseStdin ends the command's standard input after what was written.
func (e *Execution) CloseStdin() error {
	defer e.closeInput()
	return e.sendCopy(nil, true)
}

func (e *Execution) closeInput() { e.closeOnce.Do(func() { close(e.inputClosed) }) }

// pump passes the caller's reader on; its bytes go out from where they were read. A
// reader that fails must not look like one that is at its end, so the command is
// cancelled.
func (e *Execution) pump(r io.Reader) {
	buf := stdinBuffer(firstChunk)
	for {
		room := buf[protocol.StdinRoom : len(buf)-protocol.StdinRoom]
		n, err := r.Read(room)
		if n > 0 && e.sendStdin(buf, n, false) != nil {
			return
		}
		if errors.Is(err, io.EOF) {
			e.CloseStdin()
			return
		}
		if err != nil {
			e.inputFailed(err)
			return
		}
		if n == len(room) && n < stdinChunk {
			buf = stdinBuffer(stdinChunk)
		}
	}
}

// stdinBuffer has room for the frame around n bytes.
func stdinBuffer(n int) []byte { return make([]byte, n+2*protocol.StdinRoom) }

func (e *Execution) inputFailed(err error) {
	e.mu.Lock()
	e.inErr = fmt.Errorf("cannot read the command's input: %w", err)
	e.mu.Unlock()
	e.Cancel()
}

// sendCopy sends bytes that are the caller's.
func (e *Execution) sendCopy(p []byte, eof bool) error {
	e.copyMu.Lock()
	defer e.copyMu.Unlock()
	if len(e.copyBuf) < len(p)+2*protocol.StdinRoom {
		e.copyBuf = stdinBuffer(len(p))
	}
	return e.sendStdin(e.copyBuf, copy(e.copyBuf[protocol.StdinRoom:], p), eof)
}

// sendStdin hands one frame to the writer and waits until it is written, which lets
// the buffer be used again and bounds what is on its way to one chunk.
func (e *Execution) sendStdin(buf []byte, n int, eof bool) error {
	e.inputMu.Lock()
	defer e.inputMu.Unlock()
	select {
	case <-e.inputClosed: // first: select is fair, and a closed input must lose no race
		return ErrStdinClosed
	default:
	}
	select {
	case e.h.stdin <- outgoing{frame: protocol.FrameStdin(buf, e.id, n, eof), written: e.written}:
	case <-e.inputClosed:
		return ErrStdinClosed
	case <-e.h.stop:
		return ErrClosed
	}
	// The writer has the buffer: wait for it. A write ends at the latest when the
	// helper is hung up on.
	<-e.written
	e.sent.Add(int64(n))
	return nil
}

var _ io.Writer = (*Execution)(nil)
