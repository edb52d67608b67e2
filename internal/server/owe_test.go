package server

import (
	"errors"
	"io"
	"testing"
	"time"

	"sandboxd/protocol"
)

// A broker that asks many times before it reads is answered as often.
func TestEveryStartIsAnswered(t *testing.T) {
	const starts = 10 * maxReplies
	unread, out := io.Pipe()
	in, asked := io.Pipe()
	l := &loop{in: protocol.NewReader(in), out: protocol.NewWriter(out), replies: newReplies()}
	ended := make(chan error, 1)
	go func() { ended <- l.serve(); out.Close() }()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		defer asked.Close()
		send := func(id uint64, body protocol.Body) {
			b, err := protocol.AppendFrame(nil, id, body)
			if err == nil {
				_, err = asked.Write(b)
			}
			if err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Error(err)
			}
		}
		send(1, protocol.Hello{Proto: protocol.ExecVersion})
		for id := range uint64(starts) {
			send(2+id, protocol.ExecStart{Argv: []string{"x"}, Cwd: "/", Token: []byte("t"), Env: map[string]string{}, Policy: []byte{0x80}})
		}
	}()
	select {
	case <-sent:
		t.Error("the loop took everything: it has dropped what it could not say")
	case <-time.After(300 * time.Millisecond):
	}
	ends := map[uint64]int{}
	for r := protocol.NewReader(unread); ; {
		f, err := r.Next()
		if err != nil {
			break
		}
		if e, ok := f.Body.(protocol.ErrorBody); ok && e.Code == protocol.CodeBadPolicy {
			ends[f.ID]++
		}
	}
	for id := range uint64(starts) {
		if ends[2+id] != 1 {
			t.Fatalf("%d answers to %d", ends[2+id], 2+id)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Nobody is waited for who has gone, or when the helper is to end.
func TestOwedToNobody(t *testing.T) {
	for name, prepare := range map[string]func(l *loop){
		"hung up": func(l *loop) {
			l.hangup = func(<-chan struct{}) <-chan struct{} { c := make(chan struct{}); close(c); return c }
		},
		"a signal":    func(l *loop) { c := make(chan struct{}); close(c); l.signals = c },
		"lost stdout": func(l *loop) { l.lost <- io.ErrClosedPipe },
	} {
		l := &loop{replies: newReplies(), lost: make(chan error, 1)}
		for id := range uint64(maxReplies) {
			l.fail(id, protocol.CodeBusy, "x")
		}
		prepare(l)
		done := make(chan error, 1)
		go func() { done <- l.owe(1000, protocol.ErrorBody{Code: protocol.CodeBadPolicy}) }()
		select {
		case err := <-done:
			if (err == nil) != (name == "hung up") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it waits", name)
		}
	}
}
