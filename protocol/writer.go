package protocol

import (
	"fmt"
	"io"
	"sync"
)

// Writer writes frames to a stream. It is safe for concurrent use: each frame is
// one write call, so frames never interleave.
type Writer struct {
	mu     sync.Mutex
	dst    io.Writer
	vec    VectorWriter // dst, if it is one
	buf    []byte
	pieces [][]byte
	err    error
}

// VectorWriter is a destination that takes several pieces in one call, as writev(2)
// does. It may change the slice of pieces, not their bytes.
type VectorWriter interface {
	io.Writer
	WriteVector(pieces [][]byte) error
}

// NewWriter writes to dst, which must not be buffered. The data of WriteOut is not
// copied where dst is a VectorWriter.
func NewWriter(dst io.Writer) *Writer {
	vec, _ := dst.(VectorWriter)
	return &Writer{dst: dst, vec: vec}
}

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
	return w.send(b, body.Kind())
}

// send writes what was appended to the buffer.
func (w *Writer) send(b []byte, kind Kind) error {
	if cap(b) <= keepSize {
		w.buf = b
	}
	n, err := w.dst.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return w.wrote(err, kind)
}

func (w *Writer) wrote(err error, kind Kind) error {
	if err != nil {
		w.err = fmt.Errorf("cannot write %s frame: %w", kind, err)
	}
	return w.err
}
