package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"sandboxd/internal/jail"
	"sandboxd/internal/policy"
	"sandboxd/internal/ready"
	"sandboxd/protocol"
)

// Exit statuses of the server (PROTOCOL.md).
const (
	exitOrderly = 0
	exitFailed  = 1
	exitUsage   = 2
)

// collectAt is the collector's GOGC, in percent. The runtime collects at a heap of
// 4 MiB * GOGC / 100 at the earliest: at its default of 100 a helper of many executions
// holds 3 MB more, and is no quicker.
const collectAt = 50

// heapLimit is in bytes, and never reached. While it forks, the collector is off, and a
// collection that ends then would have the runtime take a heap without bounds for granted:
// it asks for huge pages for what it notes about it, which are 2 MB (runtime, malloc.go,
// minHeapForMetadataHugePages, 1 GiB).
const heapLimit = 512 << 20

// errStopped is a signal that came before there was anything to end.
var errStopped = errors.New("stopped by a signal")

// Main is the server role. version is what hello's peer carries.
func Main(args []string, version string) int {
	o, err := ParseOptions(args)
	if IsHelp(err) {
		if _, err := fmt.Print(Usage); err != nil {
			fmt.Fprintln(os.Stderr, "sandboxd: cannot write the help:", err)
			return exitFailed
		}
		return exitOrderly
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "sandboxd: %v; see sandboxd --help\n", err)
		return exitUsage
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit)
	}
	if err := serve(o, version); err != nil {
		fmt.Fprintf(os.Stderr, "sandboxd: %v\n", err)
		return exitFailed
	}
	return exitOrderly
}

func serve(o Options, version string) error {
	if err := supported(runtime.GOOS, o.AllowUnenforced); err != nil {
		return err
	}
	if noStdout() {
		return errors.New("cannot serve: descriptor 1 is closed; frames go there, so give it a pipe or a socket")
	}
	signals := stopSignals()
	base, err := basePolicy(signals)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	jail.WidenPipe(0)
	jail.WidenPipe(1)
	l := &loop{
		in: protocol.NewReader(ready.Reader(os.Stdin)), out: protocol.NewWriter(newGather(os.Stdout)), replies: newReplies(),
		base: base, peer: "sandboxd/" + version, signals: signals, hangup: hangup,
	}
	if err := l.prepare(func(ctx context.Context) error { return l.look(ctx, o) }); err != nil {
		return err
	}
	return l.serve()
}

// look finds out what this host offers.
func (l *loop) look(ctx context.Context, o Options) error {
	host, err := jail.NewHost(ctx, jail.Config{
		Bwrap: o.Bwrap, CgroupBase: o.CgroupBase, Mutable: o.Mutable,
		AllowNestedUserns: o.AllowNestedUserns, RequireEnforced: o.RequireEnforced, AcceptSkip: o.AcceptSkip, OnMaskLoss: o.OnMaskLoss, NoStandby: o.NoStandby,
	})
	if err != nil {
		return err
	}
	if !o.AllowUnenforced {
		if reason := host.Unenforced(); reason != "" {
			return fmt.Errorf("cannot serve: %s; --allow-unenforced serves all the same", reason)
		}
	}
	l.runner, l.feature = host, host.Features()
	return nil
}

func basePolicy(stop <-chan struct{}) (protocol.Policy, error) {
	b, err := readPolicyFD(stop)
	if err != nil {
		return protocol.Policy{}, fmt.Errorf("cannot read the base policy on descriptor 3: %w", err)
	}
	p, err := policy.Decode(b)
	if err != nil {
		return protocol.Policy{}, fmt.Errorf("cannot use the base policy on descriptor 3: %w", err)
	}
	return p, nil
}

// stopSignals closes its channel on the first TERM, INT or HUP; a HUP that nohup(1) has
// it ignore stays ignored, while a broker may send the others though it ignores them
// itself. SIGPIPE is caught so that a lost stdout is an error of a write and not a death.
func stopSignals() <-chan struct{} {
	stop := make(chan struct{})
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(got, syscall.SIGHUP)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		<-got
		close(stop)
	}()
	return stop
}
