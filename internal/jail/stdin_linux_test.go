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
				_, _ = q.offer(c, false)
			}
			_, _ = q.offer(nil, true)
		}()
		got, err := io.ReadAll(r)
		r.Close()
		if err != nil || !bytes.Equal(got, bytes.Join(chunks, nil)) {
			t.Fatalf("got %d bytes, %v", len(got), err)
		}
		if _, err := q.offer([]byte("late"), false); err != ErrStdinClosed {
			t.Fatalf("after eof: %v", err)
		}
	})
}

// The bound holds, and whoever waits for space hears of it.
func TestStdinQueueBound(t *testing.T) {
	q := newStdinQueue()
	big := make([]byte, MaxPendingStdin)
	if ok, err := q.offer(big, false); !ok || err != nil {
		t.Fatalf("a chunk of the whole bound: %v %v", ok, err)
	}
	space := q.spaceSignal()
	if ok, err := q.offer([]byte("x"), false); ok || err != nil {
		t.Fatalf("beyond the bound: %v %v", ok, err)
	}
	q.passed()
	<-space
	if ok, err := q.offer([]byte("x"), true); !ok || err != nil {
		t.Fatalf("with space: %v %v", ok, err)
	}
	space = q.spaceSignal()
	q.close()
	<-space
	q.passed() // what was in flight
	if ok, err := q.offer([]byte("x"), false); !ok || err != ErrStdinClosed || q.pending != 0 {
		t.Fatalf("after the end: %v %v, %d pending", ok, err, q.pending)
	}
}

// Many chunks of a byte each are not many things to keep.
func TestStdinQueueJoinsSmallChunks(t *testing.T) {
	q := newStdinQueue()
	want := []byte{}
	for i := range 4 * joined {
		want = append(want, byte(i))
		if ok, err := q.offer([]byte{byte(i)}, false); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if len(q.chunks) != 5 || q.pending != len(want) || !bytes.Equal(bytes.Join(q.chunks, nil), want) {
		t.Errorf("%d chunks of %d bytes", len(q.chunks), q.pending)
	}
	for range 5 {
		q.passed()
	}
	if q.pending != 0 {
		t.Errorf("%d bytes are left of nothing", q.pending)
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
			if ok, err := q.offer(make([]byte, 1<<20), false); !ok || err != nil {
				t.Fatal(ok, err)
			}
			one := make([]byte, 1)
			if _, err := io.ReadFull(r, one); err != nil { // the writer is at work
				t.Fatal(err)
			}
			end(q, r, w)
			<-done
			if _, err := q.offer([]byte("x"), false); err != ErrStdinClosed {
				t.Errorf("got %v", err)
			}
		})
	}
}
