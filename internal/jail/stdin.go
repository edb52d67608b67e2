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

// Input is one piece of stdin. The queue keeps Data until it is passed on.
type Input struct {
	Data   []byte
	Buffer []byte // that Data lies in, for Spare to give away again; nil: Data is its own
}

// spares are buffers whose input has been passed on.
var spares sync.Pool

// maxSpare is the largest buffer that is kept, in bytes.
const maxSpare = 1 << 20

// Spare is a buffer that is no longer used, or nil.
func Spare() []byte {
	b, _ := spares.Get().(*[]byte)
	if b == nil {
		return nil
	}
	return *b
}

// stdinQueue holds what the broker sent until the one writer has passed it on.
// Offer never blocks, so the frame loop can always hear a cancel.
type stdinQueue struct {
	mu      sync.Mutex
	chunks  []Input
	pending int
	eof     bool // the broker sent eof
	closed  bool // the command closed its end, or has ended
	wake    chan struct{}
	space   chan struct{} // closed and replaced whenever pending shrinks
}

func newStdinQueue() *stdinQueue {
	return &stdinQueue{wake: make(chan struct{}, 1), space: make(chan struct{})}
}

// Offer queues one chunk, which is then the queue's. It says false when the chunk does
// not fit yet: wait on Space and offer it again. A chunk always fits into an empty queue.
func (q *stdinQueue) offer(in Input, eof bool) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.eof || q.closed {
		return true, ErrStdinClosed
	}
	if q.pending > 0 && q.pending+len(in.Data) > MaxPendingStdin {
		return false, nil
	}
	if len(in.Data) > 0 {
		q.add(in)
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
func (q *stdinQueue) add(in Input) {
	q.pending += len(in.Data)
	if last := len(q.chunks) - 1; last > 0 && len(q.chunks[last].Data)+len(in.Data) <= joined {
		q.chunks[last] = Input{Data: append(q.chunks[last].Data, in.Data...)} // no longer in its buffer
		return
	}
	q.chunks = append(q.chunks, in)
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
		return q.chunks[0].Data, false
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
	in := q.chunks[0]
	q.pending -= len(in.Data)
	q.chunks[0] = Input{}
	q.chunks = q.chunks[1:]
	if in.Buffer != nil && cap(in.Buffer) <= maxSpare {
		spares.Put(&in.Buffer)
	}
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
// then wait for StdinSpace (or Done) and call it again with the same input.
func (r *Run) Stdin(in Input, eof bool) (bool, error) { return r.stdin.offer(in, eof) }

// StdinSpace is closed when the queue has shrunk.
func (r *Run) StdinSpace() <-chan struct{} { return r.stdin.spaceSignal() }
