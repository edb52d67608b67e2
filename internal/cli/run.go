package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// runCommand is `sandboxd run`.
func runCommand(args []string, s System) int {
	o, err := parseRun(args)
	if err != nil {
		return printed(s, func(s System) int { return reject(s, "run", err) })
	}
	s = withClosed(s, o.json)
	r := runner{o: o, s: s, say: talker(o, s)}
	defer r.say.end()
	if o.preset == presetFence && getenv(s.Environ, fenceRequired) == "1" {
		r.fenceRequired, r.o.requireEnforced, r.o.allowDegraded = true, true, false
	}
	if r.task, err = newTask(o, s); err != nil {
		return r.say.fail(exitFailed, err)
	}
	for _, note := range r.task.notes {
		r.say.notice(note)
	}
	return r.run()
}

// parseRun parses the arguments of run: flags, then the command, best after "--".
func parseRun(args []string) (options, error) {
	p := parser{command: "run", use: forRun, o: defaults()}
	rest, err := p.leading(args)
	switch {
	case err != nil:
		return options{}, err
	case len(rest) == 0:
		return options{}, errors.New("no command; type `sandboxd run [flags] -- CMD [ARG...]`")
	}
	err = p.o.contradiction()
	p.o.argv = rest
	return p.o, err
}

// fenceRequired set to 1 makes the write fence a failure where it is not enforced:
// for CI, whose green would otherwise prove nothing.
const fenceRequired = "SANDBOXD_FENCE_REQUIRED"

type runner struct {
	o             options
	s             System
	task          task
	say           voice
	fenceRequired bool
}

func (r runner) run() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	path, err := r.s.Executable()
	if err != nil {
		return r.say.fail(exitFailed, fmt.Errorf("cannot find this program's own file: %w", err))
	}
	identity := make(chan map[string]string, 1)
	go func() { identity <- gitIdentity(ctx, r.task.git, r.task.workspace, r.task.own) }() // while the helper starts
	h, err := broker.Start(ctx, r.options(path))
	if err != nil {
		return r.noHelper(err)
	}
	defer h.Close()
	if err := r.checkHost(ctx, h); err != nil {
		return r.say.fail(exitFailed, err)
	}
	env, err := r.texts(r.task.environment(r.s.Environ, <-identity))
	if err != nil {
		return r.say.fail(exitFailed, err)
	}
	r.say.start(r.task, h.Features())
	e, err := h.Start(ctx, broker.Command{
		Argv: r.o.argv, Cwd: r.task.cwd,
		Env:   env,
		Stdin: foregroundOnly(r.s.Stdin), Stdout: r.say.output(protocol.Stdout), Stderr: r.say.output(protocol.Stderr),
	})
	if err != nil {
		return r.say.fail(exitFailed, err)
	}
	w := watch(r.s.Signals, e, h)
	res, err := e.Wait()
	w.stop()
	changes := lookedWithin(lookBound, r.task.changes)
	for _, what := range changes {
		if res.Enforcement == nil { // no report that it could be part of
			r.say.notice(guardNotice + what)
		}
	}
	// The command's end is the answer; a helper that then fails to clean up says so, and
	// nothing comes behind the last word.
	left := shutDown(ctx, h)
	return r.conclude(withChanges(res, changes), err, w.killed(), left)
}

// lookBound is how long the search of the workspace afterwards may take: it follows what
// the command wrote, and that can lead to a file system that hangs.
const lookBound = 30 * time.Second

// lookedWithin gives what look finds, or that it did not end; look may be nil.
func lookedWithin(bound time.Duration, look func() []string) []string {
	if look == nil {
		return nil
	}
	found := make(chan []string, 1)
	go func() { found <- look() }()
	late := time.NewTimer(bound)
	defer late.Stop()
	select {
	case out := <-found:
		return out
	case <-late.C:
		return []string{fmt.Sprintf("what the command did to the repositories is not known: looking at them did not end within %v; look at them before you use git there", bound)}
	}
}

// helperEnd is longer than an orderly end takes, whatever hangs (PROTOCOL.md, "Time and size").
const helperEnd = 20 * time.Second

// shutDown ends the helper, if need be by a kill: with a thread that waits for a file
// system it would never be gone.
func shutDown(ctx context.Context, h *broker.Helper) error {
	bounded, cancel := context.WithTimeout(ctx, helperEnd)
	defer cancel()
	err := h.Shutdown(bounded)
	if bounded.Err() != nil {
		err = h.Kill()
	}
	return err
}

// texts checks what goes into the frame that starts the command, which has no place for
// bytes that are no UTF-8: an argument or a variable that was asked for is refused, one
// that only happens to be there is left out.
func (r runner) texts(env map[string]string) (map[string]string, error) {
	for i, arg := range r.o.argv {
		if !utf8.ValidString(arg) {
			return nil, fmt.Errorf("cannot pass on the command's word %d, %q: it is no UTF-8, and all text of the protocol is; rename the file, or have a shell in the jail find the name: run -- sh -c '... a*'", i+1, arg)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if utf8.ValidString(name) && utf8.ValidString(env[name]) {
			continue
		}
		if slices.ContainsFunc(r.o.env, func(e string) bool { return e == name || strings.HasPrefix(e, name+"=") }) {
			return nil, fmt.Errorf("cannot pass on the variable %q: it is no UTF-8, and all text of the protocol is", name)
		}
		r.say.notice(fmt.Sprintf("the variable %q is left out: it is no UTF-8, and all text of the protocol is", name))
		delete(env, name)
	}
	return env, nil
}

// noHelper is a helper that did not start. What it said itself stands there already.
func (r runner) noHelper(err error) int {
	var exit *broker.ExitError
	if errors.As(err, &exit) && strings.TrimSpace(exit.Stderr) != "" {
		return r.say.helperFailed(exitFailed, exit.Stderr)
	}
	return r.say.fail(exitFailed, err)
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
	o := broker.Options{Path: path, Policy: &r.task.policy, Stderr: r.say.helper(), Peer: "sandboxd-run"}
	if r.o.bwrap != "" {
		o.Args = append(o.Args, "--bwrap", absolute(r.task.cwd, r.o.bwrap))
	}
	if r.o.cgroupBase != "" {
		o.Args = append(o.Args, "--cgroup-base", absolute(r.task.cwd, r.o.cgroupBase))
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

// withoutJail is what can be done on a host that has none: nothing where one is demanded.
func (r runner) withoutJail() string {
	switch {
	case r.fenceRequired:
		return fenceRequired + "=1 lets nothing else run here"
	case r.o.requireEnforced:
		return "--require-enforced lets nothing else run here"
	}
	return "--allow-degraded runs it with what is left"
}

// checkHost refuses a host without a jail. Only a report says why there is none, so
// the smallest command is run for it.
func (r runner) checkHost(ctx context.Context, h *broker.Helper) error {
	if !h.Has(protocol.FeatureDegraded) && !h.Has(protocol.FeaturePlatformUnsupported) || r.o.allowDegraded {
		return nil
	}
	reason := ""
	res, err := h.Exec(ctx, broker.Command{Argv: []string{"true"}, Cwd: r.task.cwd})
	if err != nil && !errors.Is(err, broker.ErrNotEnforced) {
		reason = err.Error()
	}
	for _, entry := range res.Enforcement {
		if why, ok := strings.CutPrefix(entry, "skip:bwrap:"); ok {
			reason, _, _ = strings.Cut(strings.TrimSpace(why), "; no namespaces:")
		}
	}
	if reason != "" {
		reason = ": " + reason
	}
	return fmt.Errorf("cannot jail the command on this host%s; `sandboxd doctor` says what to do, and %s", reason, r.withoutJail())
}
