//go:build linux || darwin

package jail

import (
	"os"
	"slices"
	"time"

	"sandboxd/protocol"
)

const (
	// Chunk is the largest piece of output in one frame, in bytes.
	Chunk = 64 << 10
	// mostRead is the most that one read takes, in bytes: a command that fills its
	// pipe is woken by each read.
	mostRead = 8 * Chunk
)

// chunks are a quick command's two, which would else be most of what it costs the
// collector.
var chunks = newBuffers(2, Chunk)

// pump copies one output stream to the sink, up to a cap, and goes on reading
// after it: stopping would turn a limit into a deadlock.
//
// Output is copied, never spliced to the broker: splice(2) would pass on the command's
// own pipe buffers, with the packet flag that it can set (pipe(7), O_DIRECT). Of such
// a buffer a read takes a part and loses the rest, and the broker would then take the
// command's bytes for frames.
type pump struct {
	stream    protocol.Stream
	src       *os.File
	sink      Sink
	cap       uint64 // 0: none
	sent      uint64
	truncated bool
	lost      bool // the sink failed
	done      chan struct{}
}

func newPump(s protocol.Stream, src *os.File, sink Sink, limit uint64) *pump {
	return &pump{stream: s, src: src, sink: sink, cap: limit,
		done: make(chan struct{})}
}

func (p *pump) run() {
	defer close(p.done)
	defer p.src.Close()
	first := chunks.get()
	defer chunks.put(first)
	buf := first
	for {
		n, err := p.src.Read(buf)
		for piece := range slices.Chunk(buf[:n], Chunk) {
			p.pass(piece)
		}
		if n == len(buf) && n < mostRead {
			buf = make([]byte, mostRead)
		}
		if err == nil {
			continue
		}
		if os.IsTimeout(err) && p.drain(buf[:Chunk]) {
			p.truncated = true
		}
		return
	}
}

// drain reads the tail after the command's end. It says whether it gave up with
// a writer still there. Time spent in the sink does not count.
func (p *pump) drain(buf []byte) bool {
	budget := DrainBound
	tail := pipeBytes(p.src)
	for budget > 0 {
		began := time.Now()
		_ = p.src.SetReadDeadline(began.Add(budget))
		n, err := p.src.Read(buf)
		if tail <= 0 { // what the command itself wrote costs nothing
			budget -= time.Since(began)
		}
		if n > 0 {
			if tail -= n; tail < 0 {
				// Beyond what the pipe held at the end: a survivor is
				// writing. It gets no more than the quiet bound.
				budget -= DrainBound / 16
			}
			p.pass(buf[:n])
		}
		if err != nil {
			return os.IsTimeout(err)
		}
	}
	return true
}

// finish tells the pump that the command has ended: what is in the pipe is read,
// but nobody waits for a survivor that keeps it open.
func (p *pump) finish() { _ = p.src.SetReadDeadline(time.Unix(1, 0)) }

func (p *pump) pass(b []byte) {
	if p.truncated || p.lost {
		return
	}
	cut := false
	if p.cap > 0 && p.sent+uint64(len(b)) > p.cap {
		b, cut = b[:p.cap-p.sent], true
	}
	p.sent += uint64(len(b))
	p.truncated = cut
	if p.sink.Output(p.stream, b, p.sent, cut) != nil {
		p.lost = true
		p.sent -= uint64(len(b))
	}
}
