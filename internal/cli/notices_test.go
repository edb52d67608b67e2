package cli

import (
	"strings"
	"testing"

	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// heard is a voice of which only the notices are kept.
type heard struct {
	voice
	said []string
}

func (h *heard) notice(text string) { h.said = append(h.said, text) }

// Without asking for a report a person hears what was asked for and not given, and why the
// command ended as it did; not what every run on a host would say.
func TestNotices(t *testing.T) {
	const stuck, lost = "skip:stage2: a process of the command did not die", `skip:mounts: "/w/.env" was replaced; stopped`
	exit := func(change func(*protocol.ExecExit), enforcement ...string) broker.Result {
		x := protocol.ExecExit{Enforcement: enforcement}
		change(&x)
		return broker.Result{ExecExit: x}
	}
	cancelled := func(x *protocol.ExecExit) { x.Cancelled = true }
	late := func(x *protocol.ExecExit) { x.Cancelled, x.TimedOut = true, true }
	for _, c := range []struct {
		name string
		res  broker.Result
		want string // part of the one notice; "" for none
	}{
		{"nothing", exit(func(*protocol.ExecExit) {}, "bwrap", "mounts:ro=1", "skip:landlock: none", "skip:sockets: reachable"), ""},
		{"a ceiling", exit(func(*protocol.ExecExit) {}, "bwrap", "skip:rlimit-fsize: held by nothing"), "not enforced: rlimit-fsize: held by nothing"},
		{"a cgroup", exit(func(*protocol.ExecExit) {}, "bwrap", "cgroup-v2", "skip:cgroup-v2: can be raised"), "not enforced: cgroup-v2: can be raised"},
		{"a guard", exit(func(*protocol.ExecExit) {}, "bwrap", "skip:guard: made one"), guardNotice + "made one"},
		{"how it ended", exit(cancelled, "bwrap", stuck), "not enforced: stage2: a process"},
		{"stopped before it ran", exit(cancelled, "skip:stage2: no report", "skip:bwrap: x", "skip:mounts: x"), ""},
		{"nobody stopped it, and nothing was heard", exit(func(*protocol.ExecExit) {}, "skip:stage2: no report", "skip:bwrap: x"), "stage2: no report"},
		{"a lost mask", exit(cancelled, "bwrap", "mounts:mask=1", lost), "was replaced; stopped"},
		{"a mask that only goes unwatched", exit(late, "bwrap", "mounts:mask=1", lost), ""},
		{"cut at the limit", exit(func(x *protocol.ExecExit) { x.StdoutTruncated, x.StdoutBytes = true, 10 }, "bwrap"), "--output raises the limit of 10 bytes"},
		{"cut below it", exit(func(x *protocol.ExecExit) { x.StderrTruncated, x.StderrBytes = true, 9 }, "bwrap"), "something else still held it"},
	} {
		r := runner{task: task{policy: protocol.Policy{Limits: protocol.Limits{OutputBytes: 10}}}}
		h := &heard{}
		r.say = h
		r.notices(c.res)
		if c.want == "" && len(h.said) > 0 || c.want != "" && (len(h.said) != 1 || !strings.Contains(h.said[0], c.want)) {
			t.Errorf("%s: %q, want %q", c.name, h.said, c.want)
		}
		r.o.json = true
		h.said = nil
		if r.notices(c.res); len(h.said) > 0 && !c.res.StdoutTruncated && !c.res.StderrTruncated {
			t.Errorf("%s: events say it twice: %q", c.name, h.said)
		}
	}
}
