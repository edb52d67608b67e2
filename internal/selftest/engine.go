package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sandboxd/internal/selftest/witness"
	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// laneCount is the number of helpers: most probes wait rather than compute.
const laneCount = 4

type engine struct {
	lanes    []*lane
	baseline []string
}

// newEngine starts the helpers and runs the smallest command: where that cannot run,
// no probe can.
func newEngine(ctx context.Context, o options, sh *shared) (*engine, error) {
	e := &engine{}
	var wg sync.WaitGroup
	lanes, errs := make([]*lane, laneCount), make([]error, laneCount)
	for i := range lanes {
		wg.Go(func() { lanes[i], errs[i] = newLane(ctx, o, sh) })
	}
	wg.Wait()
	for _, l := range lanes {
		if l != nil {
			e.lanes = append(e.lanes, l)
		}
	}
	if err := errors.Join(errs...); err != nil {
		e.close()
		return nil, firstLine(errs)
	}
	e.baseline = e.lanes[0].baseline
	return e, nil
}

// firstLine is the first of several errors, which are most likely the same.
func firstLine(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func newLane(ctx context.Context, o options, sh *shared) (*lane, error) {
	l := &lane{shared: sh}
	s, err := l.site("start")
	if err != nil {
		return nil, err
	}
	policy := s.policy()
	l.h, err = broker.Start(ctx, broker.Options{
		Path: s.probe(), Args: o.helperArgs(), Policy: &policy, Peer: "sandboxd-self-test", Dir: sh.base,
		Env: append(os.Environ(), baitName+"="+sh.bait, "SSH_AUTH_SOCK="+sh.agent),
	})
	if err != nil {
		return nil, err
	}
	argv := []string{s.probe(), witness.Prefix + "file", s.nonce, s.effect()}
	asking := policy
	asking.Limits = protocol.Limits{CPUSeconds: 3600, WallSeconds: 3600, MemBytes: 1 << 40, Pids: 4096, FsizeBytes: 1 << 40, OutputBytes: 1 << 40}
	first := l.jailed(ctx, s, asking, argv, nil)
	if why := first.ran(false); why != "" {
		l.h.Close()
		return nil, fmt.Errorf("the smallest command cannot run in the jail: %s", why)
	}
	l.baseline = first.exit.Enforcement
	return l, nil
}

// helperArgs are the server's flags. A host without any layer is served too: its
// probes are skips, and the result says that nothing was shown.
func (o options) helperArgs() []string {
	args := []string{"--allow-unenforced"}
	if o.bwrap != "" {
		args = append(args, "--bwrap", o.bwrap)
	}
	if o.cgroupBase != "" {
		args = append(args, "--cgroup-base", o.cgroupBase)
	}
	return args
}

func (e *engine) features() []string { return e.lanes[0].h.Features() }

// close ends the helpers in order; their exit status says whether anything stayed.
func (e *engine) close() error {
	var errs []error
	for _, l := range e.lanes {
		ctx, cancel := context.WithTimeout(context.Background(), runBound)
		errs = append(errs, l.h.Shutdown(ctx))
		cancel()
		l.h.Close()
	}
	return errors.Join(errs...)
}

// all runs the probes on the lanes, slow ones first, and prints in table order.
func (e *engine) all(ctx context.Context, probes []Probe, p *printer) []Finding {
	order := make([]int, len(probes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(probes[a]) - rank(probes[b]) })
	next := make(chan int)
	done := make(chan int)
	findings := make([]Finding, len(probes))
	var wg sync.WaitGroup
	for _, l := range e.lanes {
		wg.Go(func() {
			for i := range next {
				findings[i] = probes[i].finding(ctx, l)
				done <- i
			}
		})
	}
	go func() {
		for _, i := range order {
			next <- i
		}
		close(next)
		wg.Wait()
		close(done)
	}()
	finished, shown := map[int]bool{}, 0
	for i := range done {
		finished[i] = true
		p.progress(len(finished), len(probes), probes[i].Name)
		for ; finished[shown]; shown++ {
			p.finding(findings[shown])
		}
	}
	return findings
}

func rank(p Probe) int {
	if p.Slow {
		return 0
	}
	return 1
}

func (p Probe) finding(ctx context.Context, l *lane) Finding {
	begin := time.Now()
	f, absent := p.absent(l.baseline)
	if !absent {
		f = p.tried(ctx, l)
	}
	f.Probe, f.Means, f.MS = p.Name, p.Means, time.Since(begin).Milliseconds()
	return f
}

// tried runs the probe. What went wrong because the run was interrupted or because the
// fixture's file system is full says nothing about a layer.
func (p Probe) tried(ctx context.Context, l *lane) Finding {
	if ctx.Err() != nil {
		return untried(interrupted)
	}
	f := p.run(ctx, l, p)
	switch f.Verdict {
	case Enforced, Untried:
		return f
	}
	if ctx.Err() != nil {
		return untried(interrupted)
	}
	if why := l.shared.full(); why != "" {
		return untried(why)
	}
	return f
}

const interrupted = "interrupted"

// absent is the skip of a probe that no layer of this host would enforce. The
// baseline asked for every ceiling and every restriction, so that what it does not
// claim is missing on this host, and not in one run only.
func (p Probe) absent(baseline []string) (Finding, bool) {
	if p.Also != "" && !claims(baseline, p.Also) {
		return skipped(skipReason(p.Also, baseline), p.Also), true
	}
	why, is := lacking(p.Layers, baseline)
	if is && p.Left != "" {
		why += "; " + p.Left
	}
	return skipped(why, p.Layers...), is
}

// refusal says whether the helper refused path as a link that a command could have
// planted, and for nothing else.
func refusal(err error, path string) bool {
	var e *broker.Error
	return errors.As(err, &e) && errors.Is(err, broker.ErrRefused) && strings.Contains(e.Msg, path) && strings.Contains(e.Msg, "link")
}

// fixtureParent is a resolved directory outside the scratch mount that the caller
// may write. Only one that was named is not replaced by another.
func fixtureParent(named string) (string, error) {
	candidates := usualParents()
	if named != "" {
		candidates = []string{named}
	}
	var why error
	for _, dir := range candidates {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil && (real == "/tmp" || strings.HasPrefix(real, "/tmp/")) {
			err = fmt.Errorf("%q is below /tmp, where the scratch is mounted", dir)
		}
		if err == nil {
			err = writable(real)
		}
		if err == nil {
			return real, nil
		}
		if why = fmt.Errorf("cannot make a fixture: %w", err); named == "" {
			why = fmt.Errorf("%w (%w)", errNowhere, err)
		}
	}
	return "", why
}

// usualParents are the directories that are tried where none is named.
func usualParents() []string {
	dirs := []string{"/var/tmp"}
	if cache, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, cache)
	}
	return dirs
}

func writable(dir string) error {
	probe, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return err
	}
	if err := os.Remove(probe); err != nil && !errors.Is(err, os.ErrNotExist) { // a sweep came first
		return err
	}
	if why := room(dir); why != "" {
		return errors.New(why)
	}
	return nil
}
