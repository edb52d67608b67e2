package policy

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"sandboxd/protocol"
)

// Every input either fails with an *Error and the zero value, or is a policy that
// passes its own rules and survives being encoded and decoded unchanged.
func FuzzDecode(f *testing.F) {
	f.Add(validDoc().bytes())
	f.Add(validDoc().with("network", doc{"mode": str1("proxy"), "allow": strs("*.a:1"), "proxy": str1("h:1")}.bytes()).bytes())
	f.Add(validDoc().with("v", num(9)).bytes())
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Msg == "" || !reflect.DeepEqual(p, protocol.Policy{}) {
				t.Fatalf("error %#v beside %+v", err, p)
			}
			return
		}
		if err := Validate(p); err != nil {
			t.Fatalf("a decoded policy is not valid: %v", err)
		}
		if !reflect.DeepEqual(Normalise(p), p) {
			t.Fatalf("a decoded policy is not normalised: %+v", p)
		}
		again := p.Append(nil)
		q, err := Decode(again)
		if err != nil || !reflect.DeepEqual(q, p) || !bytes.Equal(q.Append(nil), again) {
			t.Fatalf("no round trip: %v\n%+v\n%+v", err, p, q)
		}
	})
}

// Any bytes as limits: the zero value with an error, or a round trip.
func FuzzDecodeLimits(f *testing.F) {
	f.Add(limitsDoc().bytes())
	f.Add(limitsDoc().with("pids", num(1<<63)).bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := DecodeLimits(b)
		if err != nil {
			if l != (protocol.Limits{}) {
				t.Fatalf("limits %+v beside %v", l, err)
			}
			return
		}
		if q, err := DecodeLimits(l.Append(nil)); err != nil || q != l {
			t.Fatalf("no round trip: %+v, %v", q, err)
		}
	})
}
