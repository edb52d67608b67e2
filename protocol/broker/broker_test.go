package broker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { testenv.Cleanup(); os.Exit(code) }))
}

var argv = []string{"prog", "arg"}

func TestExecStreamsAndExits(t *testing.T) {
	var got protocol.ExecStart
	h := start(t, Options{}, func(f *fake) {
		var id uint64
		id, got = f.begin()
		f.until(protocol.KindExecStdin) // eof
		f.say(id, protocol.ExecOut{Stream: protocol.Stdout, Data: []byte("one "), Bytes: 4})
		f.say(id, protocol.ExecOut{Stream: protocol.Stderr, Data: []byte("err"), Bytes: 3})
		f.say(id, protocol.ExecOut{Stream: protocol.Stdout, Data: []byte("two"), Bytes: 7})
		f.say(id, protocol.ExecExit{Code: 3, StdoutBytes: 7, StderrBytes: 3, Enforcement: []string{"bwrap"}})
		f.until(protocol.KindShutdown)
	})
	var out, errs bytes.Buffer
	res, err := h.Exec(t.Context(), Command{
		Argv: argv, Cwd: "/w", Env: map[string]string{"A": "b"}, Stdout: &out, Stderr: &errs,
		Limits: &protocol.Limits{Pids: 9},
	})
	if err != nil || res.Code != 3 || out.String() != "one two" || errs.String() != "err" {
		t.Errorf("got code %d, %q, %q, %v", res.Code, &out, &errs, err)
	}
	if !slices.Equal(got.Argv, argv) || got.Cwd != "/w" || got.Env["A"] != "b" || len(got.Token) < 16 {
		t.Errorf("the helper was asked for %+v", got)
	}
	if got.Policy != nil || !bytes.Equal(got.Limits, protocol.Limits{Pids: 9}.Append(nil)) {
		t.Errorf("policy %x, limits %x", got.Policy, got.Limits)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if _, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/"}); !errors.Is(err, ErrClosed) {
		t.Errorf("after the shutdown: %v", err)
	}
}

func TestIDsAndTokensAreNotUsedTwice(t *testing.T) {
	ids, tokens := map[uint64]bool{}, map[string]bool{}
	h := start(t, Options{}, func(f *fake) {
		for range 5 {
			id, s := f.begin()
			ids[id], tokens[string(s.Token)] = true, true
			f.until(protocol.KindExecStdin)
			f.say(id, protocol.ExecExit{Enforcement: []string{}})
		}
		f.drain()
	})
	for range 5 {
		if _, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	h.Close()
	if len(ids) != 5 || len(tokens) != 5 || ids[0] {
		t.Errorf("5 executions: ids %v, %d tokens", ids, len(tokens))
	}
}

func TestErrorCodes(t *testing.T) {
	for sentinel, want := range map[*Error]string{
		ErrBusy: "busy", ErrBadPolicy: "bad_policy", ErrRefused: "refused", ErrSpawnFailed: "spawn_failed", ErrMalformedFrame: "malformed_frame",
	} {
		h := start(t, Options{}, func(f *fake) {
			id, _ := f.begin()
			f.say(id, protocol.ErrorBody{Code: sentinel.Code, Msg: "because"})
			id, _ = func() (uint64, protocol.ExecStart) { // the late eof of the first comes or not
				for {
					if fr := f.next(); fr.Kind == protocol.KindExecStart || fr.Kind == "" {
						s, _ := fr.Body.(protocol.ExecStart)
						return fr.ID, s
					}
				}
			}()
			f.say(id, protocol.ExecExit{Enforcement: []string{}})
			f.drain()
		})
		_, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/"})
		var e *Error
		if !errors.Is(err, sentinel) || !errors.As(err, &e) || e.Msg != "because" || string(e.Code) != want {
			t.Errorf("%s: got %v", want, err)
		}
		if errors.Is(err, ErrNoExec) {
			t.Errorf("%s is taken for another code", want)
		}
		if _, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/"}); err != nil {
			t.Errorf("after %s the channel goes on, but: %v", want, err)
		}
	}
}

func TestStdinArrivesInChunksAndInOrder(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 20_000) // 320,000 bytes
	var got []byte
	largest := 0
	h := start(t, Options{}, func(f *fake) {
		id, _ := f.begin()
		for eof := false; !eof; {
			s, ok := f.next().Body.(protocol.ExecStdin)
			if !ok {
				t.Error("something else than stdin")
				return
			}
			got, largest, eof = append(got, s.Data...), max(largest, len(s.Data)), s.EOF
		}
		f.say(id, protocol.ExecExit{Enforcement: []string{}})
		f.drain()
	})
	if _, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/", Stdin: bytes.NewReader(data)}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) || largest > stdinChunk {
		t.Errorf("%d of %d bytes came, the largest chunk has %d", len(got), len(data), largest)
	}
}

func TestNoExecClosesStdinOnly(t *testing.T) {
	h := start(t, Options{}, func(f *fake) {
		id, _ := f.begin()
		f.until(protocol.KindExecStdin)
		f.say(id, protocol.ErrorBody{Code: protocol.CodeNoExec, Msg: "the command closed its input"})
		f.until(protocol.KindHeartbeat)
		f.say(id, protocol.ExecExit{Code: 5, Enforcement: []string{}})
		f.drain()
	})
	e, err := h.Start(t.Context(), Command{Argv: argv, Cwd: "/", OpenStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	within(t, "the closing of the input", e.inputClosed)
	if n, err := e.Write([]byte("second")); n != 0 || !errors.Is(err, ErrStdinClosed) {
		t.Errorf("got %d, %v", n, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	h.Heartbeat(ctx) // tells the script to go on; the script does not answer it
	if res, err := e.Wait(); err != nil || res.Code != 5 {
		t.Errorf("got %d, %v", res.Code, err)
	}
}

func TestContextCancelsAndWaits(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("changed my mind")
	h := start(t, Options{}, func(f *fake) {
		id, _ := f.begin()
		cancel(why)
		f.until(protocol.KindCancel)
		f.say(id, protocol.ExecOut{Stream: protocol.Stdout, Data: []byte("last"), Bytes: 4})
		f.say(id, protocol.ExecExit{Code: 143, Cancelled: true, StdoutBytes: 4, Enforcement: []string{}})
		f.drain()
	})
	var out bytes.Buffer
	res, err := h.Exec(ctx, Command{Argv: argv, Cwd: "/", Stdout: &out})
	if !errors.Is(err, why) || !res.Cancelled || res.Code != 143 || out.String() != "last" {
		t.Errorf("got %+v, %q, %v", res, &out, err)
	}
}

// A cancel that lost the race against the command's own end is no error.
func TestLateCancelIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := start(t, Options{}, func(f *fake) {
		id, _ := f.begin()
		cancel()
		f.until(protocol.KindCancel)
		f.say(id, protocol.ExecExit{Code: 0, Enforcement: []string{}})
		f.drain()
	})
	if res, err := h.Exec(ctx, Command{Argv: argv, Cwd: "/"}); err != nil || res.Cancelled {
		t.Errorf("got %+v, %v", res, err)
	}
}

// A cancel is not behind the input that is still to come.
func TestCancelPassesStdin(t *testing.T) {
	var between []protocol.Frame
	ctx, cancel := context.WithCancel(t.Context())
	h := start(t, Options{}, func(f *fake) {
		id, _ := f.begin()
		f.next() // one chunk, so that the pump is at work
		cancel()
		between = f.until(protocol.KindCancel)
		f.say(id, protocol.ExecExit{Code: 143, Cancelled: true, Enforcement: []string{}})
		f.drain()
	})
	if _, err := h.Exec(ctx, Command{Argv: argv, Cwd: "/", Stdin: endless{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if h.Close(); len(between) > 1000 {
		t.Errorf("%d chunks before the cancel", len(between))
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// A helper that reads nothing, because its command does not, cannot be sent a
// cancel: it is interrupted.
func TestCancelInterruptsADeafHelper(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h, _, err := script(t, Options{}, []string{}, func(f *fake) {
		id, _ := f.begin()
		f.next()
		cancel()
		within(t, "the interrupt", f.nudged)
		f.say(id, protocol.ExecExit{Code: 143, Cancelled: true, Enforcement: []string{}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Exec(ctx, Command{Argv: argv, Cwd: "/", Stdin: endless{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := h.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// A helper whose answer nobody reads, because the caller's writer is slow, is not deaf: it
// is left alone and serves the next command.
func TestCancelBehindASlowWriter(t *testing.T) {
	for _, tc := range []struct {
		input   int
		nudged  bool
		because string
	}{
		{1 << 10, false, "it took all its input"},
		{mostPending + 1, true, "it may wait for the command to read"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		h, f, err := script(t, Options{Patience: 2 * time.Second}, []string{}, func(f *fake) {
			for range 2 {
				id, _ := f.begin()
				for fed := 0; fed < tc.input; {
					in, ok := f.next().Body.(protocol.ExecStdin)
					if !ok {
						return
					}
					fed += len(in.Data)
				}
				go f.say(id, protocol.ExecOut{Stream: protocol.Stdout, Data: []byte("x"), Bytes: 1})
				f.until(protocol.KindCancel)
				f.say(id, protocol.ExecExit{Code: 143, Cancelled: true, StdoutBytes: 1, Enforcement: []string{}})
			}
			f.drain()
		})
		if err != nil {
			t.Fatal(err)
		}
		pause := 1200 * time.Millisecond // beyond the half of Patience
		slow := writerFunc(func(b []byte) (int, error) {
			cancel()
			time.Sleep(pause)
			return len(b), nil
		})
		for range 2 {
			if _, err := h.Exec(ctx, Command{Argv: argv, Cwd: "/", Stdin: io.LimitReader(endless{}, int64(tc.input)), Stdout: slow}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", tc.because, err)
			}
			ctx, cancel = context.WithCancel(t.Context())
			pause = 0
		}
		cancel()
		select {
		case <-f.nudged:
			if !tc.nudged {
				t.Error("interrupted, although " + tc.because)
			}
		default:
			if tc.nudged {
				t.Error("not interrupted, although " + tc.because)
			}
		}
		h.Close()
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestCloseKillsAHelperThatStays(t *testing.T) {
	h := start(t, Options{Patience: 10 * time.Millisecond}, func(f *fake) { <-f.killed })
	if err := h.Close(); !errors.Is(err, ErrKilled) || !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := h.Close(); !errors.Is(err, ErrKilled) {
		t.Errorf("the second Close: %v", err)
	}
}

func TestCancelThatIsNotAnsweredKills(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := start(t, Options{Patience: 10 * time.Millisecond}, func(f *fake) {
		f.begin()
		cancel()
		f.until(protocol.KindCancel)
		<-f.killed
	})
	if _, err := h.Exec(ctx, Command{Argv: argv, Cwd: "/"}); !errors.Is(err, ErrKilled) {
		t.Errorf("got %v", err)
	}
}

func TestHelperThatDies(t *testing.T) {
	h := start(t, Options{}, func(f *fake) {
		f.exit = &ExitError{Status: 1, Cause: "exit status 1", Stderr: "first\nsandboxd: out of luck\n"}
		f.begin()
	})
	_, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/"})
	var exit *ExitError
	if !errors.As(err, &exit) || !errors.Is(err, ErrClosed) || exit.Status != 1 || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("got %v", err)
	}
	if err := h.Heartbeat(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("heartbeat: %v", err)
	}
}

func TestHelloFailures(t *testing.T) {
	cases := map[string]struct {
		do   func(f *fake)
		want error
	}{
		"another protocol": {func(f *fake) { f.say(1, protocol.Hello{Proto: 99, Peer: "x", Features: []string{}}); f.drain() }, ErrProtoMismatch},
		"no hello":         {func(f *fake) { f.say(1, protocol.Heartbeat{}); f.drain() }, ErrProtocol},
		"an error frame":   {func(f *fake) { f.say(0, protocol.ErrorBody{Code: protocol.CodeProtoMismatch, Msg: "no"}); f.drain() }, ErrProtoMismatch},
		"an early end":     {func(f *fake) { f.exit = &ExitError{Status: 1, Cause: "exit status 1"} }, ErrClosed},
		"rubbish":          {func(f *fake) { f.out.Write([]byte("not a frame at all")) }, ErrProtocol},
		"silence":          {func(f *fake) { f.drain() }, context.DeadlineExceeded},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{}
			if name == "silence" {
				o.StartTimeout = 10 * time.Millisecond
			}
			if _, _, err := script(t, o, nil, c.do); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestOutputThatCannotBePassedOnCancels(t *testing.T) {
	h := start(t, Options{}, func(f *fake) {
		id, _ := f.begin()
		f.say(id, protocol.ExecOut{Stream: protocol.Stderr, Data: []byte("x"), Bytes: 1})
		f.until(protocol.KindCancel)
		f.say(id, protocol.ExecExit{Code: 143, Cancelled: true, StderrBytes: 1, Enforcement: []string{}})
		f.drain()
	})
	res, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/", Stderr: broken{}})
	if !errors.Is(err, os.ErrPermission) || !res.Cancelled {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestInputThatCannotBeReadCancels(t *testing.T) {
	h := start(t, Options{}, func(f *fake) {
		id, _ := f.begin()
		for _, fr := range f.until(protocol.KindCancel) {
			if s, ok := fr.Body.(protocol.ExecStdin); ok && s.EOF {
				t.Error("a broken input looks like one at its end")
			}
		}
		f.say(id, protocol.ExecExit{Code: 143, Cancelled: true, Enforcement: []string{}})
		f.drain()
	})
	if _, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/", Stdin: broken{}}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrPermission }
func (broken) Read([]byte) (int, error)  { return 0, os.ErrPermission }

// An input whose Read never returns does not hold up the command's end.
func TestEndDoesNotWaitForInput(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	h := start(t, Options{}, func(f *fake) {
		id, _ := f.begin()
		f.say(id, protocol.ExecExit{Enforcement: []string{}})
		f.drain()
	})
	if _, err := h.Exec(t.Context(), Command{Argv: argv, Cwd: "/", Stdin: r}); err != nil {
		t.Error(err)
	}
}

func TestHeartbeatsFromManyGoroutines(t *testing.T) {
	h := start(t, Options{}, func(f *fake) {
		for {
			fr := f.next()
			if fr.Kind != protocol.KindHeartbeat {
				return
			}
			f.say(fr.ID, protocol.Heartbeat{})
		}
	})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := h.Heartbeat(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestNothingIsSentThatCannotBe(t *testing.T) {
	h := start(t, Options{}, func(f *fake) {
		if fr := f.next(); fr.Kind != "" {
			t.Errorf("the helper got %q", fr.Kind)
		}
	})
	if _, err := h.Exec(t.Context(), Command{}); err == nil {
		t.Error("an empty argv is accepted")
	}
	if _, err := h.Exec(t.Context(), Command{Argv: []string{strings.Repeat("x", protocol.MaxFrame)}}); err == nil {
		t.Error("a frame that is too large is accepted")
	}
}
