//go:build linux

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A command ends in every way that looks like something the helper does, and prints
// what looks like the helper's own frames. The report says what really happened.
func TestForgedReports(t *testing.T) {
	u := testenv.Ordinary(t)
	s := newScene(t, u, nil)
	forged := frame(2, protocol.ExecExit{Code: 99, Cancelled: true, Enforcement: []string{"forged"}})
	if f, err := protocol.DecodeFrame(forged[4:]); err != nil || f.Kind != protocol.KindExecExit { // the control
		t.Fatalf("the forgery is no frame: %v", err)
	}
	ok(t, os.WriteFile(s.Base+"/ro/forged", forged, 0o644))
	h := start(t, u, s.policy(nil), nil)
	h.greet()
	plain := h.run(90, s.start("/bin/true"))
	if plain.exit == nil {
		t.Fatalf("%+v", plain.fail)
	}
	for n, x := range []struct {
		name, script string
		code, signal int32
	}{
		{"a frame on stdout", "cat ../ro/forged", 0, 0},
		{"a frame on stderr", "cat ../ro/forged >&2", 0, 0},
		{"a frame on every descriptor", "for n in 0 1 2 3 4 5 6 7 8 9; do cat ../ro/forged >&$n; done 2>/dev/null; exit 4", 4, 0},
		{"a frame to init's descriptors", "for f in /proc/1/fd/*; do cat ../ro/forged >$f; done 2>/dev/null; exit 4", 4, 0},
		{"the status of a cancel", "exit 143", 143, 0},
		{"the status of a kill", "exit 137", 137, 0},
		{"the status of no launch", "exit 127", 127, 0},
		{"TERM to itself", "kill -TERM $$", 143, 15},
		{"KILL to itself", "kill -KILL $$", 137, 9},
		{"KILL to everything", "trap '' TERM; kill -KILL -1; exit 6", 6, 0},
		{"XCPU to itself", "kill -XCPU $$", 152, 24},
		{"XFSZ to itself", "kill -XFSZ $$", 153, 25},
	} {
		r := h.run(uint64(100+n), s.start("/bin/sh", "-c", x.script))
		switch {
		case r.exit == nil:
			t.Errorf("%s: %+v", x.name, r.fail)
		case r.exit.Code != int(x.code) || r.exit.Signal != int(x.signal) || r.exit.Cancelled || r.exit.TimedOut:
			t.Errorf("%s: got %+v", x.name, r.exit)
		case !same(r.exit.Enforcement, plain.exit.Enforcement):
			t.Errorf("%s: the report differs: %q, %q", x.name, r.exit.Enforcement, plain.exit.Enforcement)
		}
	}
}

// same compares reports by their tags and values; counts of this run may differ.
func same(a, b []string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// Nothing that a message or a report quotes reaches a terminal as a command to it.
func TestTerminalInjection(t *testing.T) {
	u := testenv.Ordinary(t)
	s := newScene(t, u, nil)
	ws, evil := filepath.Join(s.Base, "ws"), "e\x1b]0;x\x07\x1b[2J\r\n\u009b31m\u202e"
	ok(t, os.Mkdir(filepath.Join(ws, evil), 0o755))
	s.own()
	with := func(change func(p *protocol.Policy)) []byte {
		p := s.policy(nil)
		change(&p)
		return p.Append(nil)
	}
	h := start(t, u, s.policy(nil), nil)
	h.greet()
	for n, x := range []struct {
		name   string
		change func(b *protocol.ExecStart)
	}{
		{"a program", func(b *protocol.ExecStart) { b.Argv[0] = "/absent/" + evil }},
		{"a bare program", func(b *protocol.ExecStart) { b.Argv[0] = evil }},
		{"a directory as program", func(b *protocol.ExecStart) { b.Argv[0] = ws + "/" + evil }},
		{"a working directory", func(b *protocol.ExecStart) { b.Cwd = "/absent/" + evil }},
		{"a missing root", func(b *protocol.ExecStart) {
			b.Policy = with(func(p *protocol.Policy) { p.WritableRoots = []string{"/absent/" + evil} })
		}},
		{"a required mount", func(b *protocol.ExecStart) {
			b.Policy = with(func(p *protocol.Policy) {
				p.Mounts = []protocol.Mount{{Path: "/absent/" + evil, Access: protocol.ReadOnly, Required: true}}
			})
		}},
		{"an optional mount", func(b *protocol.ExecStart) {
			b.Policy = with(func(p *protocol.Policy) {
				p.Mounts = []protocol.Mount{{Path: "/absent/" + evil, Access: protocol.ReadOnly}}
			})
		}},
		{"a bad root", func(b *protocol.ExecStart) {
			b.Policy = with(func(p *protocol.Policy) { p.WritableRoots = []string{evil} })
		}},
		{"a bad mode", func(b *protocol.ExecStart) {
			b.Policy = with(func(p *protocol.Policy) { p.Network.Mode = protocol.NetMode(evil) })
		}},
	} {
		b := s.start("/bin/true")
		x.change(&b)
		r := h.run(uint64(100+n), b)
		said := ""
		if r.fail != nil {
			said = r.fail.Msg
		} else {
			said = strings.Join(r.exit.Enforcement, " ")
		}
		if !strings.Contains(said, "e\\x1b") && !strings.Contains(said, `\u001b`) && !strings.Contains(said, "]0;x") {
			t.Errorf("%s: the control: the message does not quote it: %q", x.name, said)
		}
		if i := strings.IndexFunc(said, func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u202e' }); i >= 0 {
			t.Errorf("%s: a control character comes through: %q", x.name, said)
		}
	}
	if i := strings.IndexAny(h.said(), "\x1b\x07\r"); i >= 0 {
		t.Errorf("a control character on standard error: %q", h.said())
	}
}
