package selftest

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"sandboxd/protocol"
)

const nonce = "n0nce"

// said is a run in which the payload said all that a good one says around lines.
func said(lines ...string) outcome {
	all := append([]string{"begin " + nonce, "effect ok"}, lines...)
	o := parse(strings.Join(append(all, "end "+nonce, ""), "\n"), nonce)
	o.effect = true
	o.exit.Enforcement = []string{"bwrap", "mounts:ro=1", "landlock:abi=7"}
	return o
}

func change(o outcome, f func(*outcome)) outcome {
	f(&o)
	return o
}

func TestJudge(t *testing.T) {
	x := expectation{layers: []string{protocol.TagMounts}, must: []string{"write"}, may: []string{"x32"}, allowed: []string{"read"}, secret: "s3cret"}
	good := said("write ok", "read ok", "x32 ok")
	denied := said("write denied EROFS", "read ok", "x32 denied EPERM")
	cases := map[string]struct {
		control, jailed outcome
		want            Verdict
		says            string
	}{
		"enforced":                        {good, denied, Enforced, ""},
		"the jail lets it through":        {good, good, Failed, "write succeeded"},
		"the optional one gets through":   {good, said("write denied EROFS", "read ok", "x32 ok"), Failed, "x32 succeeded"},
		"the control is denied":           {said("write denied EPERM", "read ok", "x32 ok"), denied, Skipped, "without the jail's rule too"},
		"the control did not run":         {outcome{err: errors.New("no such file")}, denied, Skipped, "no such file"},
		"optional, not provable":          {said("write ok", "read ok", "x32 unsupported ENOSYS"), denied, Enforced, "x32"},
		"the payload never ran":           {good, parse("", nonce), Failed, "did not announce itself"},
		"another payload's output":        {good, parse("begin other\neffect ok\nend other\n", nonce), Failed, "did not announce itself"},
		"the effect is claimed only":      {good, change(denied, func(o *outcome) { o.effect = false }), Failed, "effect is not there"},
		"the effect is not even claimed":  {good, parse("begin n0nce\nwrite denied E\nend n0nce\n", nonce), Failed, "allowed to"},
		"the end is missing":              {good, change(denied, func(o *outcome) { o.ended = false }), Failed, "announce its end"},
		"what is allowed was denied":      {good, said("write denied E", "read denied EACCES", "x32 denied E"), Failed, "which is allowed"},
		"not tried":                       {good, said("read ok", "x32 denied E"), Failed, "was not tried"},
		"the secret comes out":            {good, said("write denied E", "read ok "+hex.EncodeToString([]byte("s3cret")), "x32 denied E"), Failed, "secret"},
		"the broker's error":              {good, outcome{err: errors.New("spawn_failed: bwrap")}, Failed, "spawn_failed"},
		"the layer is not in this report": {good, change(denied, func(o *outcome) { o.exit.Enforcement = []string{"skip:mounts: 0 of 1 masks"} }), Failed, "not in force in this run"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := x.judge([]outcome{c.control}, c.jailed)
			if f.Verdict != c.want || !strings.Contains(f.Reason+f.Note, c.says) {
				t.Errorf("got %+v, want %s with %q", f, c.want, c.says)
			}
		})
	}
}

func TestJudgeOfAPayloadThatDies(t *testing.T) {
	x := expectation{must: []string{"memory"}, dies: true}
	dead := change(parse("begin n0nce\neffect ok\n", nonce), func(o *outcome) { o.effect = true })
	for name, c := range map[string]struct {
		jailed outcome
		want   Verdict
	}{
		"killed":             {dead, Enforced},
		"came to its end":    {said(), Failed},
		"reached the amount": {said("memory ok"), Failed},
		"never ran":          {outcome{}, Failed},
	} {
		if f := x.judge([]outcome{said("memory ok")}, c.jailed); f.Verdict != c.want {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

func TestSecretMustShowInTheControl(t *testing.T) {
	x := expectation{must: []string{"read"}, secret: "s3cret", shown: true}
	denied := said("read denied EACCES")
	if f := x.judge([]outcome{said("read ok")}, denied); f.Verdict != Skipped {
		t.Errorf("a control without the secret: %+v", f)
	}
	if f := x.judge([]outcome{said("read ok " + hex.EncodeToString([]byte("s3cret")))}, denied); f.Verdict != Enforced {
		t.Errorf("a control with it: %+v", f)
	}
}

func TestEveryControlCounts(t *testing.T) {
	x := expectation{must: []string{"write"}}
	if f := x.judge([]outcome{said("write ok"), said("write denied E")}, said("write denied E")); f.Verdict != Skipped {
		t.Errorf("got %+v", f)
	}
}

func TestAbsentLayers(t *testing.T) {
	p := Probe{Layers: []string{protocol.TagMounts, protocol.TagLandlock}, Left: "the rest stays open"}
	for _, c := range []struct {
		baseline []string
		absent   bool
	}{
		{[]string{"mounts:ro=1", "skip:landlock: none"}, false},
		{[]string{"landlock:abi=1", "skip:landlock: ABI 1 cannot restrict truncate", "skip:mounts: none"}, false}, // claimed in part
		{[]string{"skip:mounts: no view", "skip:landlock: none"}, true},
		{nil, true},
	} {
		f, absent := p.absent(c.baseline)
		if absent != c.absent {
			t.Errorf("%q: got %v", c.baseline, absent)
		}
		if absent && (f.Verdict != Skipped || !strings.Contains(f.Reason, "stays open") || len(f.Missing) != 2) {
			t.Errorf("%q: got %+v", c.baseline, f)
		}
	}
	if _, absent := (Probe{}).absent(nil); absent {
		t.Error("what the helper itself enforces is never absent")
	}
}

// Where the report claims the view, a denial that a second layer made in its place says
// that the mounts did not hold.
func TestDenialByTheMounts(t *testing.T) {
	for _, c := range []struct {
		enforcement, detail, want string
	}{
		{"mounts:ro=1", "open /x: read-only file system", ""},
		{"mounts:ro=1", "open /x: permission denied", "not by the mounts"},
		{"skip:mounts: no bubblewrap", "open /x: permission denied", ""},
	} {
		o := said("append denied " + c.detail)
		o.exit.Enforcement = []string{c.enforcement}
		if got := byMount(o, "read-only file system", "append"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s, %s: got %q", c.enforcement, c.detail, got)
		}
	}
}

// A /proc that may be written, where only Landlock stands in for the read-only mount.
func TestProcTellsTheMountFromLandlock(t *testing.T) {
	p := freshProc()
	for detail, want := range map[string]string{
		"open /proc/self/comm: read-only file system": "",
		"open /proc/self/comm: permission denied":     "not by the mounts",
	} {
		if got := p.extra(nil, nil, said("open2 denied "+detail)); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q", detail, got)
		}
	}
	if !slices.Contains(p.must, "open2") {
		t.Error("the write is not tried in every run")
	}
}
