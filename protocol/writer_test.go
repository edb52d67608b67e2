package protocol

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"
)

// calls keeps each write call apart.
type calls struct{ got [][]byte }

func (c *calls) Write(p []byte) (int, error) {
	c.got = append(c.got, bytes.Clone(p))
	return len(p), nil
}

func TestOneWriteCallPerFrame(t *testing.T) {
	var c calls
	w := NewWriter(&c)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				if err := w.Write(uint64(1+i*20+j), ExecOut{Stream: Stdout, Data: make([]byte, 100*i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[uint64]bool{}
	for _, b := range c.got {
		r := NewReader(bytes.NewReader(b))
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("more than a frame in one call: %v", err)
		}
		seen[f.ID] = true
	}
	if len(seen) != 160 {
		t.Fatalf("%d frames, want 160", len(seen))
	}
}

type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	f.n++
	return 1, errors.New("gone")
}

func TestWriterErrorIsSticky(t *testing.T) {
	dst := &failing{}
	w := NewWriter(dst)
	if err := w.Write(0, Cancel{}); err == nil || dst.n != 0 {
		t.Fatalf("id 0: %v after %d calls", err, dst.n)
	}
	first := w.Write(1, Cancel{})
	if first == nil || dst.n != 1 {
		t.Fatalf("got %v after %d calls", first, dst.n)
	}
	if err := w.Write(2, Cancel{}); err != first || dst.n != 1 {
		t.Fatalf("got %v after %d calls", err, dst.n)
	}
}

// The helper sends output in a loop, so that loop must not feed the collector.
func TestExecOutAllocatesNothing(t *testing.T) {
	w := NewWriter(io.Discard)
	out := &ExecOut{Stream: Stdout, Data: make([]byte, 64<<10)}
	if err := w.Write(1, out); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = w.Write(1, out) }); n != 0 {
		t.Errorf("%v allocations per frame, want none", n)
	}
	for name, w := range map[string]*Writer{"pieces": NewWriter(nowhere{}), "whole": NewWriter(io.Discard)} {
		if err := w.WriteOut(1, out); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { _ = w.WriteOut(1, out) }); n != 0 {
			t.Errorf("%s: %v allocations per frame, want none", name, n)
		}
	}
}

type nowhere struct{ io.Writer }

func (nowhere) WriteVector([][]byte) error { return nil }

// short takes a part of what it is given and calls that a success.
type short struct{ calls int }

func (s *short) Write(p []byte) (int, error) { s.calls++; return len(p) - 1, nil }

// Behind a frame that was cut nothing can be read: it is an error, and nothing follows.
func TestShortWriteIsAnError(t *testing.T) {
	dst := &short{}
	w := NewWriter(dst)
	for range 2 {
		if err := w.Write(1, Cancel{}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("got %v", err)
		}
	}
	if dst.calls != 1 {
		t.Errorf("%d writes", dst.calls)
	}
}
