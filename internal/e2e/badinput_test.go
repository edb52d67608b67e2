//go:build linux

package e2e

import (
	"bytes"
	"encoding/binary"
	"os/exec"
	"strings"
	"testing"

	"sandboxd/internal/mpack"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

func framed(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// envelope makes a frame around a hand-made body.
func envelope(id uint64, kind string, body []byte) []byte {
	b := mpack.AppendMap(nil, 4)
	b = mpack.AppendUint(mpack.AppendStr(b, "v"), protocol.EnvelopeVersion)
	b = mpack.AppendUint(mpack.AppendStr(b, "id"), id)
	b = mpack.AppendStr(mpack.AppendStr(b, "kind"), kind)
	return framed(append(mpack.AppendStr(b, "body"), body...))
}

// field is one key with its encoded value.
type field struct {
	key string
	val []byte
}

func mapOf(fields ...field) []byte {
	b := mpack.AppendMap(nil, len(fields))
	for _, f := range fields {
		b = append(mpack.AppendStr(b, f.key), f.val...)
	}
	return b
}

func str(s string) []byte { return mpack.AppendStr(nil, s) }
func bin(s string) []byte { return mpack.AppendBin(nil, []byte(s)) }

// startBody is an exec_start of /bin/true with fields replaced (nil: left out) or added.
func startBody(dir string, change ...field) []byte {
	fields := []field{
		{"argv", mpack.AppendStrs(nil, []string{"/bin/true"})}, {"env", mpack.AppendMap(nil, 0)},
		{"cwd", str(dir)}, {"token", bin("t")},
	}
next:
	for _, c := range change {
		for i := range fields {
			if fields[i].key == c.key {
				fields[i].val = c.val
				continue next
			}
		}
		fields = append(fields, c)
	}
	var kept []field
	for _, f := range fields {
		if f.val != nil {
			kept = append(kept, f)
		}
	}
	return mapOf(kept...)
}

// Each is answered under its id with the code, and the channel goes on.
func TestBadBodies(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	c := connect(t, u, basePolicy(dir))
	policyWith := func(change func(*protocol.Policy)) []byte {
		p := basePolicy(dir)
		change(&p)
		return p.Append(nil)
	}
	nul := []byte{0xc0}
	cases := []struct {
		name string
		body []byte
		code protocol.Code
		word string // that the message must hold
	}{
		{"empty argv", startBody(dir, field{"argv", mpack.AppendArray(nil, 0)}), protocol.CodeMalformedFrame, "argv"},
		{"empty token", startBody(dir, field{"token", bin("")}), protocol.CodeMalformedFrame, "token"},
		{"token as string", startBody(dir, field{"token", str("t")}), protocol.CodeMalformedFrame, "token"},
		{"relative cwd", startBody(dir, field{"cwd", str("here")}), protocol.CodeMalformedFrame, "cwd"},
		{"cwd as bin", startBody(dir, field{"cwd", bin("/tmp")}), protocol.CodeMalformedFrame, "cwd"},
		{"nil cwd", startBody(dir, field{"cwd", nul}), protocol.CodeMalformedFrame, "cwd"},
		{"missing env", startBody(dir, field{"env", nil}), protocol.CodeMalformedFrame, "env"},
		{"unknown key", startBody(dir, field{"shell", str("sh")}), protocol.CodeMalformedFrame, "shell"},
		{"duplicate key", mapOf(field{"argv", mpack.AppendStrs(nil, []string{"x"})}, field{"argv", mpack.AppendStrs(nil, []string{"x"})}), protocol.CodeMalformedFrame, "argv"},
		{"policy is nil", startBody(dir, field{"policy", nul}), protocol.CodeMalformedFrame, "policy"},
		{"policy is empty", startBody(dir, field{"policy", mapOf()}), protocol.CodeBadPolicy, "v"},
		{"policy version", startBody(dir, field{"policy", mapOf(field{"v", mpack.AppendUint(nil, 3)})}), protocol.CodeBadPolicy, "v"},
		{"policy root relative", startBody(dir, field{"policy", policyWith(func(p *protocol.Policy) { p.WritableRoots = []string{"x"} })}), protocol.CodeBadPolicy, "writable_roots[0]"},
		{"protected slash", startBody(dir, field{"policy", policyWith(func(p *protocol.Policy) { p.Protected = []string{"/"} })}), protocol.CodeBadPolicy, "protected[0]"},
		{"limits with a key too many", startBody(dir, field{"limits", mapOf(field{"cpu", mpack.AppendUint(nil, 1)})}), protocol.CodeBadPolicy, "cpu"},
		{"missing writable root", startBody(dir, field{"policy", policyWith(func(p *protocol.Policy) { p.WritableRoots = []string{dir + "/absent"} })}), protocol.CodeRefused, "absent"},
		{"cwd outside the view", startBody(dir, field{"cwd", str("/root")}), protocol.CodeRefused, "/root"},
		{"no such command", startBody(dir, field{"argv", mpack.AppendStrs(nil, []string{"/bin/absent"})}), protocol.CodeSpawnFailed, "ENOENT"},
	}
	for i, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			id := uint64(10 + i)
			c.t = t
			c.raw(envelope(id, "exec_start", tc.body))
			r := c.collect(id)
			if r.fail == nil || r.fail.Code != tc.code || !strings.Contains(r.fail.Msg, tc.word) {
				t.Fatalf("got %+v, %+v, expected %s naming %q", r.exit, r.fail, tc.code, tc.word)
			}
			if strings.Contains(r.fail.Msg, "panic") {
				t.Errorf("message: %s", r.fail.Msg)
			}
		})
	}
	c.t = t
	c.sh(1000, dir, "true") // the channel goes on
}

// Each closes the channel: one error under id 0, then a non-zero exit.
func TestMalformedFrames(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	deep := bytes.Repeat([]byte{0x91}, 100_000)
	cases := map[string][]byte{
		"length 4 GiB":       {0xff, 0xff, 0xff, 0xff, 0x80},
		"truncated":          envelope(2, "heartbeat", mapOf())[:9],
		"trailing bytes":     framed(append(envelope(2, "heartbeat", mapOf())[4:], 0xc0)),
		"empty":              framed(nil),
		"not a map":          framed([]byte{0x01}),
		"wrong v":            framed(mapOf(field{"v", mpack.AppendUint(nil, 2)}, field{"id", mpack.AppendUint(nil, 2)}, field{"kind", str("heartbeat")}, field{"body", mapOf()})),
		"missing body":       framed(mapOf(field{"v", mpack.AppendUint(nil, 1)}, field{"id", mpack.AppendUint(nil, 2)}, field{"kind", str("heartbeat")})),
		"id 0":               envelope(0, "heartbeat", mapOf()),
		"float id":           framed(mapOf(field{"v", mpack.AppendUint(nil, 1)}, field{"id", append([]byte{0xcb}, make([]byte, 8)...)}, field{"kind", str("heartbeat")}, field{"body", mapOf()})),
		"16 million entries": framed([]byte{0x81, 0xa1, 'v', 0xdd, 0x01, 0x00, 0x00, 0x00, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
		"100,000 deep":       envelope(2, "exec_start", deep),
		"invalid UTF-8":      envelope(2, "exec_start", startBody(dir, field{"cwd", str("/\xff")})),
		"ext":                envelope(2, "exec_start", []byte{0xd4, 0x01, 0x02}),
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			c := connect(t, u, basePolicy(dir))
			c.raw(raw)
			c.in.Close()
			f := c.next()
			e, ok := f.Body.(protocol.ErrorBody)
			if !ok || e.Code != protocol.CodeMalformedFrame || e.Msg == "" {
				t.Fatalf("got %+v, expected malformed_frame", f)
			}
			if f.ID != 0 && name != "ext" && name != "100,000 deep" {
				t.Errorf("under id %d, expected 0", f.ID)
			}
			if code := c.wait(); f.ID == 0 && code != 1 {
				t.Errorf("exit %d, expected 1", code)
			}
			if s := c.stderr.String(); strings.Contains(s, "goroutine") {
				t.Errorf("a panic: %s", s)
			}
		})
	}
}

func TestHelloRules(t *testing.T) {
	u := testenv.Ordinary(t)
	p := basePolicy(testenv.TempDir(t, u)).Append(nil)
	for name, first := range map[string]protocol.Body{
		"heartbeat first": protocol.Heartbeat{},
		"wrong proto":     protocol.Hello{Proto: 2, Peer: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			c := spawn(t, u, p)
			c.next()
			c.send(7, first)
			e, ok := c.next().Body.(protocol.ErrorBody)
			if !ok || e.Code != protocol.CodeProtoMismatch || !strings.Contains(e.Msg, "3") {
				t.Errorf("got %+v", e)
			}
			if code := c.wait(); code != 1 {
				t.Errorf("exit %d, expected 1", code)
			}
		})
	}
	t.Run("unknown kind", func(t *testing.T) {
		c := spawn(t, u, p)
		c.greet()
		for _, kind := range []string{"cap_call", "cap_result", "zzz"} {
			c.raw(envelope(9, kind, mapOf()))
			if e, ok := c.next().Body.(protocol.ErrorBody); !ok || e.Code != protocol.CodeUnknownKind {
				t.Errorf("%s: got %+v", kind, e)
			}
		}
		c.send(11, protocol.Heartbeat{})
		if f := c.next(); f.ID != 11 || f.Kind != protocol.KindHeartbeat {
			t.Errorf("got %+v", f)
		}
	})
}

func TestBasePolicyErrors(t *testing.T) {
	u := testenv.Ordinary(t)
	for name, tc := range map[string]struct{ raw, word string }{
		"empty":   {"", "policy"},
		"garbage": {"\xc1\xc1", "policy"},
		"json":    {"{}", "policy"},
	} {
		t.Run(name, func(t *testing.T) {
			c := spawn(t, u, []byte(tc.raw))
			if code := c.wait(); code != 1 {
				t.Errorf("exit %d, expected 1", code)
			}
			s := c.stderr.String()
			if strings.Count(s, "\n") != 1 || !strings.Contains(s, tc.word) {
				t.Errorf("stderr: %q", s)
			}
		})
	}
	t.Run("no descriptor 3", func(t *testing.T) {
		cmd := exec.Command(testenv.Binary(t))
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "descriptor 3") {
			t.Errorf("got %v: %q", err, out)
		}
	})
	t.Run("unknown flag", func(t *testing.T) {
		cmd := exec.Command(testenv.Binary(t), "--cgroup-bsae=/x")
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "cgroup-bsae") {
			t.Errorf("got %v: %q", err, out)
		}
	})
}
