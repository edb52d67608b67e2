package broker

import (
	"errors"
	"testing"

	"sandboxd/protocol"
)

func TestProtocolBreaches(t *testing.T) {
	cases := map[string]func(f *fake, id uint64){
		"wrong count": func(f *fake, id uint64) {
			f.say(id, protocol.ExecOut{Stream: protocol.Stdout, Data: []byte("x"), Bytes: 2})
		},
		"wrong total": func(f *fake, id uint64) { f.say(id, protocol.ExecExit{StdoutBytes: 1, Enforcement: []string{}}) },
		"output of an id that was never used": func(f *fake, id uint64) {
			f.say(id+1, protocol.ExecOut{Stream: protocol.Stdout, Data: []byte("x"), Bytes: 1})
		},
		"exit of an id that was never used": func(f *fake, id uint64) { f.say(id+1, protocol.ExecExit{Enforcement: []string{}}) },
		"rubbish":                           func(f *fake, id uint64) { f.out.Write([]byte{0, 0, 0, 2, 0x91, 0xc0}) },
		"a cut frame":                       func(f *fake, id uint64) { f.out.Write([]byte{0, 0, 0, 200, 0x84}) },
		"a huge length":                     func(f *fake, id uint64) { f.out.Write([]byte{255, 255, 255, 255}) },
	}
	for name, breach := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, Options{}, func(f *fake) {
				id, _ := f.begin()
				breach(f, id)
				if name != "a cut frame" {
					f.drain()
				}
			})
			if _, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/"}); !errors.Is(err, ErrProtocol) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Nothing comes of an execution that has had its exit.
func TestSecondTerminalFrame(t *testing.T) {
	for name, body := range map[string]protocol.Body{
		"exit": protocol.ExecExit{Enforcement: []string{}}, "output": protocol.ExecOut{Stream: protocol.Stdout, Data: []byte("x"), Bytes: 1},
	} {
		h := start(t, Options{}, func(f *fake) {
			id, _ := f.begin()
			f.say(id, protocol.ExecExit{Enforcement: []string{}})
			f.until(protocol.KindExecStart) // the end of the first one's input may come before
			f.say(id, body)
			f.drain()
		})
		if _, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/"}); err != nil {
			t.Errorf("%s: the first execution: %v", name, err)
		}
		if _, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/"}); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// What has ended in time counts as that, however late it is asked about.
func TestClosesInTime(t *testing.T) {
	done, open := make(chan struct{}), make(chan struct{})
	close(done)
	for range 1000 {
		if !closes(done, 0) {
			t.Fatal("a closed channel counts as open")
		}
		if closes(open, 0) {
			t.Fatal("an open channel counts as closed")
		}
	}
}
