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
		if err := e.sendStdin(protocol.ExecStdin{Data: p[:n]}); err != nil {
			return sent, err
		}
		sent, p = sent+n, p[n:]
	}
	return sent, nil
}

// CloseStdin ends the command's standard input after what was written.
func (e *Execution) CloseStdin() error {
	defer e.closeInput()
	return e.sendStdin(protocol.ExecStdin{EOF: true})
}

func (e *Execution) closeInput() { e.closeOnce.Do(func() { close(e.inputClosed) }) }

// pump copies the caller's reader. A reader that fails must not look like one that
// is at its end, so the command is cancelled.
func (e *Execution) pump(r io.Reader) {
	buf := make([]byte, stdinChunk)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, werr := e.Write(buf[:n]); werr != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			e.CloseStdin()
			return
		}
		if err != nil {
			e.inputFailed(err)
			return
		}
	}
}

func (e *Execution) inputFailed(err error) {
	e.mu.Lock()
	e.inErr = fmt.Errorf("cannot read the command's input: %w", err)
	e.mu.Unlock()
	e.Cancel()
}

// sendStdin hands one frame to the writer and waits until it is written, which lets
// the buffer be used again and bounds what is on its way to one chunk.
func (e *Execution) sendStdin(body protocol.ExecStdin) error {
	e.inputMu.Lock()
	defer e.inputMu.Unlock()
	select {
	case <-e.inputClosed: // first: select is fair, and a closed input must lose no race
		return ErrStdinClosed
	default:
	}
	var err error
	if e.inputBuf, err = protocol.AppendFrame(e.inputBuf[:0], e.id, body); err != nil {
		return fmt.Errorf("cannot send input: %w", err)
	}
	select {
	case e.h.stdin <- outgoing{frame: e.inputBuf, written: e.written}:
	case <-e.inputClosed:
		return ErrStdinClosed
	case <-e.h.stop:
		return ErrClosed
	}
	// The writer has the buffer: wait for it. A write ends at the latest when the
	// helper is hung up on.
	<-e.written
	return nil
}

var _ io.Writer = (*Execution)(nil)
