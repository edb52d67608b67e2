package jail

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
	"sandboxd/internal/testenv"
)

// The kernel tells that somebody did not read what was sent before it gives what that one
// sent: a stage 2 that fails with the word unread is heard all the same, and one that ends
// so after its report has executed nothing.
func TestUnreadWord(t *testing.T) {
	testenv.NoNewFDs(t)
	for name, c := range map[string]struct {
		said []byte
		want func(s *supervision) bool
	}{
		"failure": {spec.Failure{Step: spec.StepLookup, Errno: uint64(unix.ENOENT), Msg: "not there"}.Append(nil),
			func(s *supervision) bool { return s.fail != nil && s.fail.Msg != "" && s.cause == nil }},
		"report": {spec.Report{}.Append(nil), func(s *supervision) bool { return s.cause == errEndOfReport }},
	} {
		t.Run(name, func(t *testing.T) {
			s, peer := listening(t)
			_ = unix.Sendto(peer, spec.Begun{}.Append(nil), 0, nil)
			s.onEvent(<-s.events)
			if !s.allowed {
				t.Fatal("the word did not come before the report")
			}
			_ = unix.Sendto(peer, c.said, 0, nil)
			unix.Close(peer)
			for s.fail == nil {
				s.onEvent(<-s.events)
			}
			if s.executed || !c.want(s) {
				t.Errorf("executed %v, %v, %v", s.executed, s.fail, s.cause)
			}
			s.hush()
			if s.p.payloadFD >= 0 {
				unix.Close(s.p.payloadFD)
			}
		})
	}
}

// The end of fd 4 means that the command runs only behind a report, told or not.
func TestEndWithoutAReport(t *testing.T) {
	_, s, _ := newFake()
	s.allowed = true
	s.onEvent(event{noMessage, errEndOfReport})
	if s.executed || s.fail == nil || !errors.Is(s.cause, errEndOfReport) {
		t.Errorf("executed %v, %v", s.executed, s.fail)
	}
}
