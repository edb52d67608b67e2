package server

import (
	"errors"
	"io"
	"testing"

	"sandboxd/protocol"
)

// A full queue drops heartbeats first, and never grows.
func TestRepliesDropHeartbeatsFirst(t *testing.T) {
	q := newReplies()
	for i := range uint64(maxReplies / 2) {
		q.put(i+1, protocol.Heartbeat{})
		q.put(1000+i, protocol.ErrorBody{Code: protocol.CodeBusy})
	}
	for i := range uint64(10) {
		q.put(2000+i, protocol.ErrorBody{Code: protocol.CodeNoExec})
	}
	beats, errs := count(q)
	if len(q.queue) != maxReplies || beats != maxReplies/2-10 || errs != maxReplies/2+10 {
		t.Errorf("%d heartbeats and %d errors", beats, errs)
	}
	if q.queue[0].id != 1000 {
		t.Errorf("%d is the oldest: the oldest heartbeats go first", q.queue[0].id)
	}
	for range 200 {
		q.put(1, protocol.ErrorBody{})
	}
	if beats, _ := count(q); len(q.queue) != maxReplies || beats != 0 {
		t.Errorf("%d queued, %d heartbeats", len(q.queue), beats)
	}
}

func count(q *replies) (beats, errs int) {
	for _, r := range q.queue {
		if r.body.Kind() == protocol.KindHeartbeat {
			beats++
		} else {
			errs++
		}
	}
	return beats, errs
}

type lostWriter struct{}

func (lostWriter) Write([]byte) (int, error) { return 0, errors.New("gone") }

// A lost channel ends the writer, and nobody waits for what it will not write.
func TestRepliesOfALostChannel(t *testing.T) {
	q := newReplies()
	var told error
	q.put(1, protocol.Heartbeat{})
	q.put(2, protocol.Heartbeat{})
	q.write(protocol.NewWriter(lostWriter{}), func(err error) { told = err })
	q.put(3, protocol.Heartbeat{})
	q.flush()
	if told == nil {
		t.Error("the loop was not told")
	}
}

// Output costs no allocation per frame.
func TestOutputDoesNotAllocate(t *testing.T) {
	l := &loop{out: protocol.NewWriter(io.Discard), lost: make(chan error, 1)}
	s := newSink(l, 7)
	data := make([]byte, 64<<10)
	total := uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		total += uint64(len(data))
		if s.Output(protocol.Stderr, data, total, false) != nil {
			t.Fatal("cannot write")
		}
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}
