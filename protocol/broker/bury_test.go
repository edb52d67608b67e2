package broker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sandboxd/protocol"
)

// A killed helper is done with, whatever keeps its output from being read to the end.
func TestKillPassesABlockedWriter(t *testing.T) {
	for name, end := range map[string]func(h *Helper, e *Execution){
		"kill":   func(h *Helper, _ *Execution) { _ = h.Kill() },
		"close":  func(h *Helper, _ *Execution) { _ = h.Close() },
		"cancel": func(_ *Helper, e *Execution) { e.Cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blocked, free := make(chan struct{}), make(chan struct{})
			defer close(free)
			w := writerFunc(func(b []byte) (int, error) { close(blocked); <-free; return len(b), nil })
			h := start(t, Options{Patience: 10 * time.Millisecond}, func(f *fake) {
				id, _ := f.begin()
				f.say(id, protocol.ExecOut{Stream: protocol.Stdout, Data: []byte("x"), Bytes: 1})
				<-f.killed
			})
			e, err := h.Start(t.Context(), Command{Argv: argv, Cwd: "/", Stdout: w})
			if err != nil {
				t.Fatal(err)
			}
			<-blocked
			go end(h, e)
			waited := make(chan error, 1)
			go func() { _, err := e.Wait(); waited <- err }()
			select {
			case err := <-waited:
				if !errors.Is(err, ErrKilled) {
					t.Errorf("got %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it waits for the writer")
			}
			if err := h.Close(); !errors.Is(err, ErrKilled) {
				t.Errorf("the end of the helper: %v", err)
			}
		})
	}
}

// One that does not die, because a file system hangs, is left behind.
func TestHelperThatCannotDie(t *testing.T) {
	running, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	h := start(t, Options{Patience: 10 * time.Millisecond}, func(f *fake) {
		f.begin()
		f.stays = over
		close(running)
		<-over
	})
	e, err := h.Start(t.Context(), Command{Argv: argv, Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	<-running
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	select {
	case err := <-closed:
		if !errors.Is(err, ErrKilled) || !strings.Contains(err.Error(), "does not die") {
			t.Errorf("got %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("its end is waited for")
	}
	if _, err := e.Wait(); !errors.Is(err, ErrKilled) || !errors.Is(err, ErrClosed) {
		t.Errorf("the execution: %v", err)
	}
}
