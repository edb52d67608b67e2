package protocol

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// vector is a destination like calls, which takes pieces.
type vector struct{ calls }

func (v *vector) WriteVector(pieces [][]byte) error {
	_, err := v.Write(slices.Concat(pieces...))
	clear(pieces) // a destination may change the slice
	return err
}

// WriteOut writes the bytes that AppendFrame gives, in one call, whether the
// destination takes pieces or not.
func TestWriteOutIsAppendFrame(t *testing.T) {
	var v vector
	var c calls
	vw, cw := NewWriter(&v), NewWriter(&c)
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Uint64Min(1).Draw(t, "id")
		n := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(65536-300, 65536+300)).Draw(t, "bytes")
		o := ExecOut{Stream: rapid.SampledFrom([]Stream{Stdout, Stderr}).Draw(t, "stream"), Data: make([]byte, n),
			Bytes: rapid.Uint64().Draw(t, "count"), Truncated: rapid.Bool().Draw(t, "truncated")}
		for i := range o.Data {
			o.Data[i] = byte(i * 7)
		}
		want, err := AppendFrame(nil, id, o)
		if err != nil {
			t.Fatal(err)
		}
		v.got, c.got = nil, nil
		for _, w := range []*Writer{vw, cw} {
			if err := w.WriteOut(id, &o); err != nil {
				t.Fatal(err)
			}
		}
		for name, got := range map[string][][]byte{"pieces": v.got, "whole": c.got} {
			if len(got) != 1 || !bytes.Equal(got[0], want) {
				t.Fatalf("%s: %d calls, want 1, or other bytes", name, len(got))
			}
		}
	})
}

func TestWriteOutErrors(t *testing.T) {
	dst := &failing{}
	w := NewWriter(dst)
	out := &ExecOut{Stream: Stdout, Data: make([]byte, 1000), Bytes: 1000}
	if err := w.WriteOut(0, out); err == nil || dst.n != 0 {
		t.Fatalf("id 0: %v after %d calls", err, dst.n)
	}
	first := w.WriteOut(1, out)
	if first == nil || dst.n != 1 {
		t.Fatalf("got %v after %d calls", first, dst.n)
	}
	if err := w.WriteOut(2, out); err != first || dst.n != 1 {
		t.Fatalf("got %v after %d calls", err, dst.n)
	}
	broken := &vector{}
	w = NewWriter(lost{broken})
	first = w.WriteOut(1, out)
	if first == nil || w.Write(2, Cancel{}) != first || w.WriteOut(2, out) != first || len(broken.got) != 1 {
		t.Fatalf("pieces: got %v, %d calls", first, len(broken.got))
	}
}

// lost takes pieces and gives an error.
type lost struct{ *vector }

func (l lost) WriteVector(pieces [][]byte) error {
	_ = l.vector.WriteVector(pieces)
	return errors.New("gone")
}
