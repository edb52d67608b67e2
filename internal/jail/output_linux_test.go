package jail

import (
	"os"
	"runtime"
	"testing"

	"sandboxd/protocol"
)

// frames is a sink like the server's: one body, reused.
type frames struct {
	w    *protocol.Writer
	out  protocol.ExecOut
	n    int
	most int
}

func (f *frames) Output(s protocol.Stream, data []byte, total uint64, truncated bool) error {
	f.out = protocol.ExecOut{Stream: s, Data: data, Bytes: total, Truncated: truncated}
	f.n++
	f.most = max(f.most, len(data))
	return f.w.WriteOut(1, &f.out)
}

// A stream costs no allocation for each frame, and no frame has more than a chunk,
// however much one read gives.
func TestPumpAllocatesNothingPerFrame(t *testing.T) {
	w, r, err := newPipe(false)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const blocks, block = 512, 128 << 10
	go func() {
		defer w.Close()
		b := make([]byte, block)
		for range blocks {
			if _, err := w.Write(b); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	sink := &frames{w: protocol.NewWriter(null)}
	p := newPump(protocol.Stdout, r, sink, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.run()
	runtime.ReadMemStats(&after)
	if p.sent != blocks*block || p.truncated || sink.most != Chunk || sink.n < blocks*block/Chunk {
		t.Errorf("%d bytes in %d frames of at most %d, truncated %v", p.sent, sink.n, sink.most, p.truncated)
	}
	// The buffers, and what the runtime and the writing side take for themselves.
	if made := after.Mallocs - before.Mallocs; made > 100 {
		t.Errorf("%d allocations for %d frames", made, sink.n)
	}
}
