package server

import (
	"bytes"
	"testing"

	"sandboxd/protocol"
)

// say runs the loop over what a broker sent and gives what it answered after its
// hello.
func say(t *testing.T, frames []byte) (answers []protocol.Frame, end error) {
	t.Helper()
	var out bytes.Buffer
	l := &loop{in: protocol.NewReader(bytes.NewReader(frames)), out: protocol.NewWriter(&out), replies: newReplies()}
	end = l.serve()
	for r := protocol.NewReader(&out); ; {
		f, err := r.Next()
		if err != nil {
			return answers, end
		}
		if f.Kind != protocol.KindHello {
			answers = append(answers, f)
		}
	}
}

// Id 0 belongs to the helper's error about a malformed frame. From a broker it is
// a malformed frame, whatever the kind.
func TestIDZeroFromABroker(t *testing.T) {
	frame := func(id uint64, body protocol.Body) []byte {
		b, err := protocol.AppendFrame(nil, id, body)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	hello := frame(1, protocol.Hello{Proto: protocol.ExecVersion})
	whole := frame(0, protocol.ErrorBody{Code: protocol.CodeBusy})
	broken := bytes.Replace(whole, []byte("busy"), []byte("oops"), 1)
	zero := bytes.Replace(frame(7, protocol.Cancel{}), []byte("id\x07"), []byte("id\x00"), 1)
	beat := frame(9, protocol.Heartbeat{})
	for name, sent := range map[string][]byte{
		"an error": bytes.Join([][]byte{hello, whole, beat}, nil), "an error with a bad body": bytes.Join([][]byte{hello, broken, beat}, nil),
		"another kind": bytes.Join([][]byte{hello, zero, beat}, nil), "before hello": bytes.Join([][]byte{whole, hello, beat}, nil),
	} {
		got, end := say(t, sent)
		if len(got) != 1 || got[0].ID != 0 || end == nil {
			t.Errorf("%s: got %+v, %v", name, got, end)
			continue
		}
		if e, ok := got[0].Body.(protocol.ErrorBody); !ok || e.Code != protocol.CodeMalformedFrame {
			t.Errorf("%s: got %+v", name, got[0])
		}
	}
	// The same error under another id is only a kind that the helper does not take.
	got, end := say(t, bytes.Join([][]byte{hello, frame(7, protocol.ErrorBody{Code: protocol.CodeBusy}), beat}, nil))
	if len(got) != 2 || got[0].ID != 7 || got[0].Body.(protocol.ErrorBody).Code != protocol.CodeUnknownKind || got[1].ID != 9 || end != nil {
		t.Errorf("under id 7: got %+v, %v", got, end)
	}
}
