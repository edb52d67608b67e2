package protocol

import (
	"fmt"
	"io"
	"sync"
)

// Writer writes frames to a stream. It is safe for concurrent use: each frame is
// one write call, so frames never interleave.
type Writer struct {
	mu  sync.Mutex
	dst io.Writer
	buf []byte
	err error
}

// NewWriter writes to dst, which must not be buffered.
func NewWriter(dst io.Writer) *Writer { return &Writer{dst: dst} }

// Write sends one frame. Body may be a pointer to a body's type, which saves an
// allocation for a body that is reused. A body that cannot be encoded (see
// AppendFrame) leaves the stream as it was; an error of the stream is sticky, for
// half a frame may have been written.
func (w *Writer) Write(id uint64, body Body) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	b, err := AppendFrame(w.buf[:0], id, body)
	if err != nil {
		return err
	}
	if cap(b) <= keepSize {
		w.buf = b
	}
	n, err := w.dst.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fmt.Errorf("cannot write %s frame: %w", body.Kind(), err)
	}
	return w.err
}
