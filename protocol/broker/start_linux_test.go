package broker

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A start that fails says why and keeps no descriptor; one that can is the control.
func TestStartThatFails(t *testing.T) {
	testenv.NoNewFDs(t)
	p := &protocol.Policy{Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	start := func(o Options) error {
		h, err := Start(t.Context(), o)
		if err == nil {
			h.Close()
		}
		return err
	}
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"no path", Options{Policy: p}, "Options.Path and Options.Policy are required"},
		{"no policy", Options{Path: "/bin/true"}, "Options.Path and Options.Policy are required"},
		{"no such program", Options{Path: "/nonexistent/sandboxd", Policy: p}, `cannot start helper "/nonexistent/sandboxd": `},
		{"no such directory", Options{Path: "/bin/true", Dir: "/nonexistent", Policy: p}, `cannot start helper "/bin/true": `},
		{"a program that is no helper", Options{Path: "/bin/true", Policy: p}, "the helper has ended"},
	} {
		if err := start(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// With room for one pipe, for two, and so on.
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	next, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	first := uint64(next.Fd())
	next.Close()
	short := 0
	for room := range uint64(8) {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: first + room, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		err := start(Options{Path: "/bin/true", Policy: p})
		if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); e != nil {
			t.Fatal(e)
		}
		if errors.Is(err, unix.EMFILE) && strings.Contains(err.Error(), "cannot start helper") {
			short++
		} else if err == nil || !errors.Is(err, ErrClosed) {
			t.Errorf("room for %d descriptors: %v", room, err)
		}
	}
	if short < 6 {
		t.Errorf("only %d of the starts were short of descriptors", short)
	}
}

// Of what a helper says the end is kept, whatever becomes of the caller's writer.
func TestHelperThatSaysMuch(t *testing.T) {
	p := &protocol.Policy{Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	_, err := Start(t.Context(), Options{Path: "/bin/sh", Policy: p, Stderr: broken{},
		Args: []string{"-c", "head -c 100000 /dev/zero | tr '\\0' x >&2; echo THE END >&2; exit 3"}})
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Status != 3 || len(exit.Stderr) != stderrTail || !strings.HasSuffix(exit.Stderr, "x\nTHE END\n") && !strings.HasSuffix(exit.Stderr, "xTHE END\n") {
		t.Errorf("got %v", err)
	}
}

// Whoever does not wait for the end leaves the helper as it is.
func TestShutdownThatIsNotWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why, on := errors.New("no time"), make(chan struct{})
	h := start(t, Options{}, func(f *fake) {
		f.until(protocol.KindShutdown)
		cancel(why)
		<-on
	})
	if err := h.Shutdown(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if _, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/"}); !errors.Is(err, ErrClosed) {
		t.Errorf("a command after the shutdown: %v", err)
	}
	close(on)
	within(t, "the end of the helper", h.done)
	if err := h.Close(); err != nil {
		t.Errorf("the helper's end: %v", err)
	}
}

// A helper that ends in order instead of answering is lost, and so is its answer.
func TestHeartbeatThatIsNotAnswered(t *testing.T) {
	h := start(t, Options{}, func(f *fake) { f.until(protocol.KindHeartbeat) })
	if err := h.Heartbeat(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// Whether the command has run is the first thing to know of what was not enforced.
func TestNotEnforcedSays(t *testing.T) {
	for ran, want := range map[bool]string{true: "the command ran, but", false: "the command was not started, since"} {
		if got := (&NotEnforcedError{Missing: []string{"landlock", "seccomp-net"}, Ran: ran}).Error(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "landlock, seccomp-net") {
			t.Errorf("%q", got)
		}
	}
}
