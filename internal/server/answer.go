package server

import (
	"fmt"
	"strings"

	"sandboxd/protocol"
)

// maxMessage bounds what a message tells, in bytes: a peer's own words must not
// come back as a frame that cannot be written.
const maxMessage = 8 << 10

func (l *loop) fail(id uint64, code protocol.Code, format string, args ...any) {
	l.replies.put(id, protocol.ErrorBody{Code: code, Msg: brief(fmt.Sprintf(format, args...), maxMessage)})
}

// owe answers an exec_start while nothing runs: the loop may then wait for a broker to
// read, as long as there is one.
func (l *loop) owe(id uint64, body protocol.Body) error {
	stop := make(chan struct{})
	defer close(stop)
	var gone <-chan struct{}
	for !l.replies.put(id, body) {
		if gone == nil && l.hangup != nil {
			gone = l.hangup(stop)
		}
		select {
		case <-l.replies.room:
		case <-gone:
			return nil
		case <-l.signals:
			return errOrderly
		case err := <-l.lost:
			return fmt.Errorf("cannot write a frame: %w", err)
		}
	}
	return nil
}

// brief cuts a text between two runes.
func brief(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
