package server

import (
	"io"
	"testing"

	"sandboxd/internal/jail"
	"sandboxd/protocol"
)

// counted starts executions that never end.
type counted int

func (c *counted) Start(jail.Request, jail.Sink) *jail.Run { *c++; return &jail.Run{} }
func (c *counted) Ready(protocol.Policy)                   {}
func (c *counted) Close() error                            { return nil }

// What does not end of a file system that hangs has a bound: each such execution keeps a
// thread and descriptors.
func TestStuckExecutionsAreBounded(t *testing.T) {
	for late := range maxLeftovers + 1 {
		var started counted
		l := &loop{replies: newReplies(), runner: &started, out: protocol.NewWriter(io.Discard), freed: make(chan *jail.Run, 1)}
		for range late {
			l.keep(&jail.Run{}) // nobody ever closes what says that it is released
		}
		if err := l.start(7, protocol.ExecStart{Argv: []string{"x"}, Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		refused := false
		if r, ok := l.replies.take(); ok {
			e, is := r.body.(protocol.ErrorBody)
			refused = is && e.Code == protocol.CodeSpawnFailed && r.id == 7
		}
		if want := late == maxLeftovers; refused != want || (started == 0) != want {
			t.Errorf("%d do not end: refused %v, %d started", late, refused, started)
		}
	}
}
