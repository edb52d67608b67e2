package jail

import (
	"bytes"
	"io"
	"os"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/testenv"
)

// What is offered comes out in order, whatever the sizes, and eof after it.
func TestStdinQueueKeepsOrder(t *testing.T) {
	testenv.NoNewFDs(t)
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 200), 0, 30).Draw(t, "chunks")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		q := newStdinQueue()
		go q.pump(w)
		go func() {
			for _, c := range chunks {
				_, _ = q.offer(Input{Data: c}, false)
			}
			_, _ = q.offer(Input{}, true)
		}()
		got, err := io.ReadAll(r)
		r.Close()
		if err != nil || !bytes.Equal(got, bytes.Join(chunks, nil)) {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
		if _, err := q.offer(Input{Data: []byte("late")}, false); err != ErrStdinClosed {
			t.Fatalf("after eof: %v", err)
		}
	})
}

// The bound holds, and whoever waits for space hears of it.
func TestStdinQueueBound(t *testing.T) {
	q := newStdinQueue()
	big := make([]byte, MaxPendingStdin)
	if ok, err := q.offer(Input{Data: big}, false); !ok || err != nil {
		t.Fatalf("a chunk of the whole bound: %v %v", ok, err)
	}
	space := q.spaceSignal()
	if ok, err := q.offer(Input{Data: []byte("x")}, false); ok || err != nil {
		t.Fatalf("beyond the bound: %v %v", ok, err)
	}
	q.passed()
	<-space
	if ok, err := q.offer(Input{Data: []byte("x")}, true); !ok || err != nil {
		t.Fatalf("with space: %v %v", ok, err)
	}
	space = q.spaceSignal()
	q.close()
	<-space
	q.passed() // what was in flight
	if ok, err := q.offer(Input{Data: []byte("x")}, false); !ok || err != ErrStdinClosed || q.pending != 0 {
		t.Fatalf("after the end: %v %v, %d pending", ok, err, q.pending)
	}
}

// Many chunks of a byte each are not many things to keep.
func TestStdinQueueJoinsSmallChunks(t *testing.T) {
	q := newStdinQueue()
	want := []byte{}
	for i := range 4 * joined {
		want = append(want, byte(i))
		if ok, err := q.offer(Input{Data: []byte{byte(i)}}, false); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if len(q.chunks) != 5 || q.pending != len(want) || !bytes.Equal(queued(q), want) {
		t.Errorf("%d chunks of %d bytes", len(q.chunks), q.pending)
	}
	for range 5 {
		q.passed()
	}
	if q.pending != 0 {
		t.Errorf("%d bytes are left of nothing", q.pending)
	}
}

func queued(q *stdinQueue) (all []byte) {
	for _, in := range q.chunks {
		all = append(all, in.Data...)
	}
	return all
}

// A buffer is used again when its input is passed on, not before, and not when other
// input was joined to it.
func TestStdinQueueGivesBuffersBack(t *testing.T) {
	for Spare() != nil {
	}
	q := newStdinQueue()
	big, small := make([]byte, joined), make([]byte, 100)
	for _, in := range []Input{{big[10:], big}, {small[10:20:20], small}, {Data: []byte("more")}} {
		if ok, err := q.offer(in, false); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if len(q.chunks) != 2 || Spare() != nil {
		t.Fatalf("%d chunks, or a buffer that is in use", len(q.chunks))
	}
	clear(small)
	copy(small[20:], "else") // behind what was given
	if got := queued(q)[len(big)-10+10:]; string(got) != "more" {
		t.Errorf("behind the joined input: %q", got)
	}
	q.passed()
	q.passed()
	if q.pending != 0 {
		t.Errorf("%d bytes are left of nothing", q.pending)
	}
	// Under the race detector a pool drops some of what it is given.
	if b := Spare(); b != nil && &b[0] != &big[0] {
		t.Error("another buffer")
	}
	if Spare() != nil {
		t.Error("a buffer that its input has left")
	}
	q.offer(Input{make([]byte, 2*maxSpare), make([]byte, 2*maxSpare)}, false)
	q.passed()
	if Spare() != nil {
		t.Error("a buffer that is too large to keep")
	}
}

// A command that closed its end is told about by the next chunk; one that never
// reads does not hold the writer beyond its end.
func TestStdinWriterEnds(t *testing.T) {
	for name, end := range map[string]func(q *stdinQueue, r, w *os.File){
		"reader closed": func(_ *stdinQueue, r, _ *os.File) { r.Close() },
		"ended":         func(q *stdinQueue, _, w *os.File) { q.close(); w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			q := newStdinQueue()
			done := make(chan struct{})
			go func() { defer close(done); q.pump(w) }()
			if ok, err := q.offer(Input{Data: make([]byte, 1<<20)}, false); !ok || err != nil {
				t.Fatal(ok, err)
			}
			one := make([]byte, 1)
			if _, err := io.ReadFull(r, one); err != nil { // the writer is at work
				t.Fatal(err)
			}
			end(q, r, w)
			<-done
			if _, err := q.offer(Input{Data: []byte("x")}, false); err != ErrStdinClosed {
				t.Errorf("got %v", err)
			}
		})
	}
}
