package cli

import (
	"encoding/base64"
	"unicode/utf8"

	"sandboxd/protocol"
)

// eventStream turns one stream into output events. A character that is cut by the
// end of a chunk waits for its rest.
type eventStream struct {
	e    *events
	name protocol.Stream
	tail []byte
}

func (s *eventStream) Write(b []byte) (int, error) {
	data := append(s.tail, b...)
	n := len(data) - cutRune(data)
	s.tail = append([]byte(nil), data[n:]...)
	if n == 0 {
		return len(b), nil
	}
	return len(b), s.put(data[:n])
}

func (s *eventStream) flush() {
	if len(s.tail) > 0 {
		s.put(s.tail)
		s.tail = nil
	}
}

func (s *eventStream) put(data []byte) error {
	ev := outputEvent{Event: "output", Stream: s.name}
	if utf8.Valid(data) {
		text := string(data)
		ev.Text = &text
	} else {
		text := base64.StdEncoding.EncodeToString(data)
		ev.Base64 = &text
	}
	return s.e.put(ev)
}

// cutRune gives the length of a character that begins at the end and is not complete.
func cutRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
