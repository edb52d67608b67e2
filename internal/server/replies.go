package server

import (
	"sync"

	"sandboxd/protocol"
)

// maxReplies bounds the replies that wait for a broker that does not read.
const maxReplies = 64

// reply is one frame that waits to be written.
type reply struct {
	id   uint64
	body protocol.Body
}

// replies is the queue between the frame loop and the writer. When it is full,
// heartbeat answers are dropped first; errors beyond that are dropped too, but for
// those that an exec_start is owed: the broker that caused them is not reading.
type replies struct {
	mu    sync.Mutex
	queue []reply
	wake  chan struct{}
	room  chan struct{} // told when a reply was taken off
	idle  *sync.Cond    // queue empty and nothing in flight
	busy  bool
	lost  bool
}

func newReplies() *replies {
	q := &replies{wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	q.idle = sync.NewCond(&q.mu)
	return q
}

// put says whether the reply found room.
func (q *replies) put(id uint64, body protocol.Body) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) >= maxReplies && !q.dropHeartbeat() {
		return false
	}
	q.queue = append(q.queue, reply{id, body})
	tell(q.wake)
	return true
}

func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (q *replies) dropHeartbeat() bool {
	for i, r := range q.queue {
		if r.body.Kind() == protocol.KindHeartbeat {
			q.queue = append(q.queue[:i], q.queue[i+1:]...)
			return true
		}
	}
	return false
}

// write passes the queue on until the channel is lost. It runs for the helper's
// whole life.
func (q *replies) write(w *protocol.Writer, lost func(error)) {
	for range q.wake {
		for {
			r, ok := q.take()
			if !ok {
				break
			}
			err := w.Write(r.id, r.body)
			q.wrote(err)
			if err != nil {
				lost(err)
				return
			}
		}
	}
}

func (q *replies) take() (reply, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 || q.lost {
		return reply{}, false
	}
	r := q.queue[0]
	q.queue = q.queue[1:]
	q.busy = true
	tell(q.room)
	return r, true
}

func (q *replies) wrote(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = false
	q.lost = q.lost || err != nil
	if len(q.queue) == 0 || q.lost {
		q.idle.Broadcast()
	}
}

// flush waits until everything queued is written, or the channel is lost.
func (q *replies) flush() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for (len(q.queue) > 0 || q.busy) && !q.lost {
		q.idle.Wait()
	}
}
