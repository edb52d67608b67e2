package broker_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// real starts the real binary with a workspace of the current user.
func real(t *testing.T, change func(*broker.Options, string)) (*broker.Helper, string) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/bwrap"); err != nil {
		testenv.Skip(t, "bwrap", "scripts/setup run installs bubblewrap")
	}
	dir := testenv.TempDir(t, testenv.Me())
	o := broker.Options{
		Path: testenv.Binary(t),
		Policy: &protocol.Policy{
			WritableRoots: []string{dir}, Network: protocol.Network{Mode: protocol.NetOff},
			EnvAllow: []string{"PATH"}, Scratch: protocol.ScratchTmpfs,
		},
		Demand: broker.Full,
	}
	if change != nil {
		change(&o, dir)
	}
	h, err := broker.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h, dir
}

// sandboxd is the path of the binary, for the examples.
func sandboxd() string {
	path, err := testenv.BinaryPath()
	if err != nil {
		panic(err)
	}
	return path
}

func sh(dir, script string) broker.Command {
	return broker.Command{Argv: []string{"sh", "-c", script}, Env: map[string]string{"PATH": "/usr/bin:/bin"}, Cwd: dir}
}

func TestRealExecutions(t *testing.T) {
	testenv.NoNewFDs(t)
	testenv.NoNewChildren(t)
	h, dir := real(t, nil)
	for i := range 3 { // strictly one after the other: never busy
		var out, errs bytes.Buffer
		c := sh(dir, "cat; echo e >&2; exit 4")
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader("in"), &out, &errs
		res, err := h.Exec(t.Context(), c)
		if err != nil || res.Code != 4 || out.String() != "in" || errs.String() != "e\n" {
			t.Fatalf("run %d: code %d, %q, %q, %v", i, res.Code, &out, &errs, err)
		}
	}
	if err := h.Heartbeat(t.Context()); err != nil {
		t.Errorf("heartbeat: %v", err)
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestRealErrors(t *testing.T) {
	h, dir := real(t, nil)
	c := sh(dir, "true")
	c.Argv = []string{"no-such-command"}
	if _, err := h.Exec(t.Context(), c); !errors.Is(err, broker.ErrSpawnFailed) {
		t.Errorf("no such command: %v", err)
	}
	c = sh("/no/such/directory", "true")
	if _, err := h.Exec(t.Context(), c); !errors.Is(err, broker.ErrRefused) {
		t.Errorf("a cwd outside the view: %v", err)
	}
	c = sh(dir, "true")
	c.Policy = &protocol.Policy{WritableRoots: []string{"relative"}, Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	if _, err := h.Exec(t.Context(), c); !errors.Is(err, broker.ErrBadPolicy) {
		t.Errorf("a relative root: %v", err)
	}
	if res, err := h.Exec(t.Context(), sh(dir, "exit 5")); err != nil || res.Code != 5 {
		t.Errorf("after all of these: %d, %v", res.Code, err)
	}
}

func TestRealBusyAndCancel(t *testing.T) {
	h, dir := real(t, nil)
	ready := testenv.NewMarker(dir, "ready")
	ctx, cancel := context.WithCancel(t.Context())
	e, err := h.Start(ctx, sh(dir, ready.Shell("x")+"; exec sleep 600"))
	if err != nil {
		t.Fatal(err)
	}
	ready.Wait(t)
	if _, err := h.Exec(t.Context(), sh(dir, "true")); !errors.Is(err, broker.ErrBusy) {
		t.Errorf("a second command: %v", err)
	}
	cancel()
	res, err := e.Wait()
	if !errors.Is(err, context.Canceled) || !res.Cancelled || res.TimedOut || res.Code != 143 {
		t.Errorf("got %+v, %v", res.ExecExit, err)
	}
}

// The input fills every buffer on the way, so that the cancel frame cannot be sent:
// the client's way out is an interrupt, which ends the helper in an orderly way.
func TestRealCancelBehindUnreadInput(t *testing.T) {
	h, dir := real(t, nil)
	ready := testenv.NewMarker(dir, "ready")
	ctx, cancel := context.WithCancel(t.Context())
	c := sh(dir, ready.Shell("x")+"; exec sleep 600")
	sent := &counter{full: make(chan struct{})}
	c.Stdin = sent
	e, err := h.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	ready.Wait(t)
	<-sent.full
	cancel()
	if res, err := e.Wait(); !errors.Is(err, context.Canceled) || !res.Cancelled {
		t.Errorf("got %+v, %v", res.ExecExit, err)
	}
}

// counter is an endless input that tells when 15 MiB are on their way.
type counter struct {
	n    int
	full chan struct{}
}

func (c *counter) Read(b []byte) (int, error) {
	if c.n < 15<<20 && c.n+len(b) >= 15<<20 {
		close(c.full)
	}
	c.n += len(b)
	return len(b), nil
}

func TestRealBadPolicyOnStart(t *testing.T) {
	_, err := broker.Start(t.Context(), broker.Options{
		Path:   testenv.Binary(t),
		Policy: &protocol.Policy{Scratch: "relative", Network: protocol.Network{Mode: protocol.NetOff}},
	})
	var exit *broker.ExitError
	if !errors.As(err, &exit) || exit.Status != 1 || !strings.Contains(err.Error(), "scratch") {
		t.Errorf("got %v", err)
	}
}

func TestRealUnknownFlag(t *testing.T) {
	_, err := broker.Start(t.Context(), broker.Options{Path: testenv.Binary(t), Args: []string{"--cgroup-bas", "/x"}, Policy: &protocol.Policy{}})
	var exit *broker.ExitError
	if !errors.As(err, &exit) || exit.Status != 2 || !strings.Contains(exit.Stderr, "cgroup-bas") {
		t.Errorf("got %v", err)
	}
}
