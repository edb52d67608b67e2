package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// runCommand is `sandboxd run`.
func runCommand(args []string, s System) int {
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		return help(nil, s)
	}
	o, err := parseRun(args)
	if err != nil {
		return complain(s, exitUsage, err)
	}
	workspace, cwd, err := place(o, s)
	if err != nil {
		return complain(s, exitFailed, err)
	}
	if o.preset == presetFence && getenv(s.Environ, fenceRequired) == "1" {
		o.requireEnforced, o.allowDegraded = true, false
	}
	p, err := build(o, workspace, cwd, s.Environ)
	if err != nil {
		return complain(s, exitFailed, err)
	}
	for _, note := range p.notes {
		complain(s, 0, errors.New(note))
	}
	r := runner{o: o, s: s, preset: p, policy: p.policy, cwd: cwd, workspace: workspace}
	return r.run()
}

// fenceRequired set to 1 makes the write fence a failure where it is not enforced:
// for CI, whose green would otherwise prove nothing.
const fenceRequired = "SANDBOXD_FENCE_REQUIRED"

func complain(s System, code int, err error) int {
	fmt.Fprintln(s.Stderr, "sandboxd:", printable(err.Error()))
	return code
}

type runner struct {
	o         options
	s         System
	preset    preset
	policy    protocol.Policy
	cwd       string
	workspace string
}

func (r runner) run() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	path, err := r.s.Executable()
	if err != nil {
		return complain(r.s, exitFailed, fmt.Errorf("cannot find this program's own file: %w", err))
	}
	identity := make(chan map[string]string, 1)
	go func() { identity <- gitIdentity(ctx, r.preset.git) }() // while the helper starts
	h, err := broker.Start(ctx, r.options(path))
	if err != nil {
		return complain(r.s, exitFailed, err)
	}
	defer h.Close()
	if err := r.checkHost(ctx, h); err != nil {
		return complain(r.s, exitFailed, err)
	}
	e, err := h.Start(ctx, broker.Command{
		Argv: r.o.argv, Cwd: r.cwd,
		Env:   environment(r.o, r.s.Environ, r.preset, <-identity),
		Stdin: r.s.Stdin, Stdout: r.s.Stdout, Stderr: r.s.Stderr,
	})
	if err != nil {
		return complain(r.s, exitFailed, err)
	}
	stop := r.watch(e, h)
	defer stop()
	res, err := e.Wait()
	changes := r.preset.changes()
	code := r.conclude(withChanges(res, changes), err)
	if res.Enforcement == nil { // no report that they could be part of
		for _, what := range changes {
			complain(r.s, 0, errors.New(guardNotice+what))
		}
	}
	// The command's end is the answer; a helper that then fails to clean up says so.
	if err := h.Shutdown(ctx); err != nil {
		complain(r.s, 0, err)
	}
	return code
}

// guardNotice begins a line about something that no mount can keep a command from.
const guardNotice = "NOT enforced  guard: "

// withChanges adds to a report what only a search of the workspace finds: the helper
// looks at the top of it.
func withChanges(res broker.Result, changes []string) broker.Result {
	for _, what := range changes {
		entry := "skip:" + protocol.TagGuard + ": " + what
		if res.Enforcement != nil && !slices.Contains(res.Enforcement, entry) {
			res.Enforcement = append(res.Enforcement, entry)
		}
	}
	return res
}

func (r runner) options(path string) broker.Options {
	o := broker.Options{Path: path, Policy: &r.policy, Stderr: r.s.Stderr, Peer: "sandboxd-run"}
	if r.o.bwrap != "" {
		o.Args = append(o.Args, "--bwrap", absolute(r.cwd, r.o.bwrap))
	}
	if r.o.cgroupBase != "" {
		o.Args = append(o.Args, "--cgroup-base", absolute(r.cwd, r.o.cgroupBase))
	}
	for _, tag := range r.o.acceptSkip {
		o.Args = append(o.Args, "--accept-skip", tag)
	}
	if r.o.requireEnforced {
		o.Args = append(o.Args, "--require-enforced")
		o.Accept = r.o.acceptSkip
		o.Demand = broker.Full
	}
	return o
}

// watch cancels by the helper's ladder on the first signal and kills the helper,
// whose death takes the jail, on the second.
func (r runner) watch(e *broker.Execution, h *broker.Helper) (stop func()) {
	signals, end := r.s.Signals()
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			if n == 0 {
				e.Cancel()
			} else {
				h.Kill()
			}
		}
	}()
	return func() { end(); close(done) }
}

// checkHost refuses a host without a jail. Only a report says why there is none, so
// the smallest command is run for it.
func (r runner) checkHost(ctx context.Context, h *broker.Helper) error {
	if !h.Has("degraded") && !h.Has("platform-unsupported") || r.o.allowDegraded {
		return nil
	}
	reason := "see `sandboxd --help`"
	res, err := h.Exec(ctx, broker.Command{Argv: []string{"true"}, Cwd: r.cwd})
	if err != nil && !errors.Is(err, broker.ErrNotEnforced) {
		reason = err.Error()
	}
	for _, entry := range res.Enforcement {
		if why, ok := strings.CutPrefix(entry, "skip:bwrap:"); ok {
			reason = strings.TrimSpace(why)
		}
	}
	return fmt.Errorf("this host has no jail for the command (%s); install or enable what is missing, or give --allow-degraded to run it with what is left", reason)
}
