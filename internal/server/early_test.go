package server

import (
	"strings"
	"testing"

	"sandboxd/protocol"
)

// Whatever a broker sends before the host has been looked at counts as what it holds.
func TestWeight(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	for name, f := range map[string]protocol.Frame{
		"stdin":          {Kind: protocol.KindExecStdin, Body: protocol.ExecStdin{Data: []byte(text)}},
		"start":          {Kind: protocol.KindExecStart, Body: protocol.ExecStart{}},
		"peer":           {Kind: protocol.KindHello, Body: protocol.Hello{Peer: text}},
		"features":       {Kind: protocol.KindHello, Body: protocol.Hello{Features: []string{"", text}}},
		"empty features": {Kind: protocol.KindHello, Body: protocol.Hello{Features: make([]string, 1<<16)}},
		"exit":           {Kind: protocol.KindExecExit, Body: protocol.ExecExit{Enforcement: []string{text}}},
		"error":          {Kind: protocol.KindError, Body: protocol.ErrorBody{Msg: text}},
		"unknown kind":   {Kind: protocol.Kind(text)},
	} {
		if n := weight(incoming{frame: f}); n < 1<<20 {
			t.Errorf("%s: %d bytes", name, n)
		}
	}
	for _, body := range []protocol.Body{protocol.Hello{Peer: "p", Features: []string{"f"}}, protocol.Cancel{}, protocol.Heartbeat{}} {
		if n := weight(incoming{frame: protocol.Frame{Kind: body.Kind(), Body: body}}); n > 100 {
			t.Errorf("%s: %d bytes", body.Kind(), n)
		}
	}
}
