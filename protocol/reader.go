package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	firstRead = 64 << 10 // bytes allocated before any of a frame has come
	keepSize  = 1 << 20  // a larger buffer is let go once frames are small again
)

// Reader reads frames from a stream. It is not safe for concurrent use.
type Reader struct {
	src    io.Reader
	buf    []byte
	prefix [prefixSize]byte // of the next frame
	ahead  int              // bytes of it that came with the frame before
	err    error
}

// NewReader reads from src, which need not be buffered: while frames wait, one read
// gives one frame and the length of the next.
func NewReader(src io.Reader) *Reader { return &Reader{src: src} }

// Next reads one frame. ExecStdin.Data and ExecOut.Data are valid only until the
// next call; the rest of the frame may be kept.
//
// The error is io.EOF when the stream ended between two frames, a *DecodeError when
// the peer sent something wrong, else the stream's error. All but a *DecodeError
// that is not fatal are sticky: every later call gives the same. A frame that the
// end of the stream cuts short is fatal and unwraps to io.ErrUnexpectedEOF.
func (r *Reader) Next() (Frame, error) {
	if r.err != nil {
		return Frame{}, r.err
	}
	b, err := r.read()
	if err != nil {
		r.err = err
		return Frame{}, err
	}
	f, err := DecodeFrame(b)
	if bad, ok := err.(*DecodeError); ok && bad.Fatal {
		r.err = err
	}
	return f, err
}

// read gives the bytes of the next frame's map.
func (r *Reader) read() ([]byte, error) {
	had := r.ahead
	r.ahead = 0
	if _, err := io.ReadFull(r.src, r.prefix[had:]); err != nil {
		if err == io.EOF && had == 0 {
			return nil, io.EOF
		}
		return nil, streamError(err)
	}
	n := binary.BigEndian.Uint32(r.prefix[:])
	if n > MaxFrame {
		return nil, &DecodeError{Fatal: true, Msg: fmt.Sprintf("found a length of %d bytes, expected at most %d", n, MaxFrame)}
	}
	return r.fill(int(n))
}

// fill reads n bytes, and with the last of them the next prefix if it is there. The
// buffer doubles only as bytes arrive: a claimed length costs its sender as much as
// it costs us.
func (r *Reader) fill(n int) ([]byte, error) {
	if r.buf == nil || cap(r.buf) > keepSize && n <= firstRead {
		r.buf = make([]byte, firstRead)
	}
	have := 0
	for have < n {
		if have == len(r.buf) {
			grown := make([]byte, min(n+prefixSize, 2*have))
			copy(grown, r.buf)
			r.buf = grown
		}
		end := min(n+prefixSize, len(r.buf))
		got, err := io.ReadAtLeast(r.src, r.buf[have:end], min(n, end)-have)
		if err != nil {
			return nil, streamError(err)
		}
		have += got
	}
	r.ahead = copy(r.prefix[:], r.buf[n:have])
	return r.buf[:n], nil
}

// Swap gives away the buffer that the last frame's data lies in, so that the data
// stays as it is, and goes on with the one that other gives (nil: a new one). It
// gives nil, and keeps the buffer, where that has more than most bytes.
func (r *Reader) Swap(most int, other func() []byte) []byte {
	if cap(r.buf) > most {
		return nil
	}
	old := r.buf
	if r.buf = other(); r.buf != nil {
		r.buf = r.buf[:cap(r.buf)]
	}
	return old
}

// streamError is for an error inside a frame, where the end of the stream is one.
func streamError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &DecodeError{Fatal: true, Msg: "the stream ended inside a frame", cause: io.ErrUnexpectedEOF}
	}
	return fmt.Errorf("cannot read frame: %w", err)
}
