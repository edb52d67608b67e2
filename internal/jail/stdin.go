package jail

import (
	"errors"
	"os"
	"sync"
)

// MaxPendingStdin bounds the bytes that wait for a command to read them.
const MaxPendingStdin = 1 << 24

// ErrStdinClosed is the answer to stdin after eof, or after the command closed
// its end.
var ErrStdinClosed = errors.New("the command's stdin is closed")

// stdinQueue holds what the broker sent until the one writer has passed it on.
// Offer never blocks, so the frame loop can always hear a cancel.
type stdinQueue struct {
	mu      sync.Mutex
	chunks  [][]byte
	pending int
	eof     bool // the broker sent eof
	closed  bool // the command closed its end, or has ended
	wake    chan struct{}
	space   chan struct{} // closed and replaced whenever pending shrinks
}

func newStdinQueue() *stdinQueue {
	return &stdinQueue{wake: make(chan struct{}, 1), space: make(chan struct{})}
}

// Offer queues one chunk, which is then the queue's. It says false when the chunk does not fit yet: wait on
// Space and offer it again. A chunk always fits into an empty queue.
func (q *stdinQueue) offer(data []byte, eof bool) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.eof || q.closed {
		return true, ErrStdinClosed
	}
	if q.pending > 0 && q.pending+len(data) > MaxPendingStdin {
		return false, nil
	}
	if len(data) > 0 {
		q.add(data)
	}
	q.eof = eof
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true, nil
}

// add joins small chunks: each by itself costs more than the byte that it may hold. The
// first one is left alone, it may be being written.
func (q *stdinQueue) add(data []byte) {
	q.pending += len(data)
	if last := len(q.chunks) - 1; last > 0 && len(q.chunks[last])+len(data) <= joined {
		q.chunks[last] = append(q.chunks[last], data...)
		return
	}
	q.chunks = append(q.chunks, data)
}

// joined is how long a chunk of small ones becomes, in bytes.
const joined = 64 << 10

func (q *stdinQueue) spaceSignal() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.space
}

// close drops what is queued: the command has ended or closed its end.
func (q *stdinQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.chunks, q.pending = true, nil, 0
	q.signalSpace()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *stdinQueue) signalSpace() {
	close(q.space)
	q.space = make(chan struct{})
}

func (q *stdinQueue) next() (chunk []byte, end bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.chunks) > 0 {
		return q.chunks[0], false
	}
	return nil, q.eof || q.closed
}

// passed takes the first chunk off the queue once it is written, not before: the
// bound is on what the helper still holds.
func (q *stdinQueue) passed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.chunks) == 0 {
		return // closed meanwhile
	}
	q.pending -= len(q.chunks[0])
	q.chunks[0] = nil
	q.chunks = q.chunks[1:]
	q.signalSpace()
}

// pump writes the queue to the command and closes the pipe after eof. It ends
// when the queue is closed and w.Close or a deadline interrupts its write.
func (q *stdinQueue) pump(w *os.File) {
	defer w.Close()
	for {
		chunk, end := q.next()
		switch {
		case chunk != nil:
			if _, err := w.Write(chunk); err != nil {
				q.close()
				return
			}
			q.passed()
		case end:
			return
		default:
			<-q.wake
		}
	}
}

// Stdin queues bytes for the command. It says false when they do not fit yet;
// then wait for StdinSpace (or Done) and call it again with the same bytes.
func (r *Run) Stdin(data []byte, eof bool) (bool, error) { return r.stdin.offer(data, eof) }

// StdinSpace is closed when the queue has shrunk.
func (r *Run) StdinSpace() <-chan struct{} { return r.stdin.spaceSignal() }
