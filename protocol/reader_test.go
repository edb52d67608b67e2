package protocol

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// pieceRead gives no more than the sizes in its list at once, and counts its reads.
type pieceRead struct {
	data  []byte
	sizes []int
	reads int
}

func (p *pieceRead) Read(b []byte) (int, error) {
	p.reads++
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	most := len(b)
	if len(p.sizes) > 0 {
		most, p.sizes = min(most, p.sizes[0]), p.sizes[1:]
	}
	n := copy(b[:most], p.data)
	p.data = p.data[n:]
	return n, nil
}

// However the bytes arrive, frames come out as they went in.
func TestReaderReadsAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(firstRead-200, firstRead+200)), 1, 12).Draw(t, "frames")
		var stream []byte
		for i, n := range sizes {
			stream, _ = AppendFrame(stream, uint64(i+1), ExecStdin{Data: bytes.Repeat([]byte{byte(i)}, n)})
		}
		src := &pieceRead{data: stream, sizes: rapid.SliceOfN(rapid.IntRange(1, 70000), 0, 20).Draw(t, "reads")}
		r := NewReader(src)
		for i, n := range sizes {
			f, err := r.Next()
			if err != nil || f.ID != uint64(i+1) || !bytes.Equal(f.Body.(ExecStdin).Data, bytes.Repeat([]byte{byte(i)}, n)) {
				t.Fatalf("frame %d: %v", i, err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("at the end: %v", err)
		}
	})
}

// While frames wait each takes one read, once the buffer has its size.
func TestOneReadPerFrame(t *testing.T) {
	for _, n := range []int{0, 1, 1000, firstRead - 50, firstRead, firstRead + 50, 1 << 20} {
		const frames = 20
		var stream []byte
		for range frames {
			stream, _ = AppendFrame(stream, 1, ExecStdin{Data: make([]byte, n)})
		}
		src := &pieceRead{data: stream}
		r := NewReader(src)
		var before int
		for i := range frames {
			if i == 2 {
				before = src.reads
			}
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if got := src.reads - before; got != frames-2 {
			t.Errorf("frames of %d bytes: %d reads for %d frames", n, got, frames-2)
		}
	}
}

// The end inside a prefix of which a part came early is inside a frame.
func TestEndInsideAnEarlyPrefix(t *testing.T) {
	stream, _ := AppendFrame(nil, 1, Cancel{})
	for n := 1; n < prefixSize; n++ {
		r := NewReader(bytes.NewReader(append(bytes.Clone(stream), make([]byte, n)...)))
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes of a prefix: %v", n, err)
		}
	}
}

// What was swapped out is not written to any more, and a buffer given back is used.
func TestSwapKeepsTheData(t *testing.T) {
	var stream []byte
	for i := range 4 {
		stream, _ = AppendFrame(stream, 1, ExecStdin{Data: bytes.Repeat([]byte{'a' + byte(i)}, 1000)})
	}
	r := NewReader(bytes.NewReader(stream))
	next := func() []byte {
		t.Helper()
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		return f.Body.(ExecStdin).Data
	}
	none := func() []byte { return nil }
	first := next()
	if b := r.Swap(firstRead-1, none); b != nil {
		t.Errorf("a buffer of %d bytes, at most %d were asked for", cap(b), firstRead-1)
	}
	old := r.Swap(firstRead, none)
	if old == nil {
		t.Fatal("no buffer")
	}
	second := next()
	kept := r.Swap(firstRead, none)
	third := next()
	r.Swap(firstRead, func() []byte { return old[:0] })
	for i, got := range [][]byte{first, second, third} {
		if !bytes.Equal(got, bytes.Repeat([]byte{'a' + byte(i)}, 1000)) {
			t.Errorf("frame %d has changed", i)
		}
	}
	next()
	if first[0] != 'd' || &kept[0] == &old[0] {
		t.Error("the buffer that was given back is not used")
	}
}
