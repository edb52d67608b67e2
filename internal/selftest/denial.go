package selftest

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"sandboxd/internal/selftest/witness"
	"sandboxd/protocol"
)

// Probe is one line of the self-test.
type Probe struct {
	Name   string
	Means  string   // what is tried
	Layers []string // any one of them enforces it; none: the helper itself does
	Also   string   // a layer without which the probe would hit something else
	Left   string   // what stays open where it is skipped
	Slow   bool     // started first
	Linux  bool     // means nothing on another system
	run    func(ctx context.Context, l *lane, p Probe) Finding
}

// denial is a probe of which the jail must refuse something, as data.
type denial struct {
	must, may, allowed []string
	setup              func(l *lane, s *site) error
	role               string
	args               func(l *lane, s *site) []string
	controlArgs        func(l *lane, s *site) []string // where they differ
	argv               func(l *lane, s *site) []string // instead of role and args
	policy             func(s *site) protocol.Policy
	granted            func(s *site) protocol.Policy // the control in the jail
	unjailed           bool                          // the control without it
	dies, shown        bool
	noSecret           bool     // the probe itself carries the secret
	intact             []string // paths of the site that the jailed run must leave as they are
	extra              func(l *lane, s *site, o outcome) string
	note               func(o outcome) string // of what was enforced
}

// probe makes a denial a probe's body.
func (d denial) probe(ctx context.Context, l *lane, p Probe) Finding {
	controls, err := d.controls(ctx, l, p)
	if err != nil {
		return untried(err.Error())
	}
	s, err := d.site(l, p)
	if err != nil {
		return untried(err.Error())
	}
	before := d.snapshots(s)
	o := l.jailed(ctx, s, d.policyOf(s), d.command(l, s, d.args), nil)
	x := expectation{
		layers: p.Layers, must: d.must, may: d.may, allowed: d.allowed, dies: d.dies,
		secret: s.secret, shown: d.shown,
		extra: func(o outcome) string { return d.after(ctx, l, s, o, before) },
	}
	if d.noSecret {
		x.secret = ""
	}
	for i := range controls { // each site has a secret of its own
		controls[i].raw = replace(controls[i].raw, controls[i].secret, s.secret)
	}
	f := x.judge(outcomes(controls), o)
	if d.note != nil && f.Verdict == Enforced {
		f.Note = d.note(o)
	}
	return f
}

func (d denial) site(l *lane, p Probe) (*site, error) {
	s, err := l.site(p.Name)
	if err == nil && d.setup != nil {
		err = d.setup(l, s)
	}
	return s, err
}

func (d denial) policyOf(s *site) protocol.Policy {
	if d.policy == nil {
		return s.policy()
	}
	return d.policy(s)
}

func (d denial) command(l *lane, s *site, args func(*lane, *site) []string) []string {
	if d.argv != nil {
		return d.argv(l, s)
	}
	return append([]string{s.probe(), witness.Prefix + d.role, s.nonce, s.effect()}, args(l, s)...)
}

// control is an outcome with the secret of the site it came from.
type control struct {
	outcome
	secret string
}

// controls runs the same action where it is allowed.
func (d denial) controls(ctx context.Context, l *lane, p Probe) ([]control, error) {
	var all []control
	args := d.args
	if d.controlArgs != nil {
		args = d.controlArgs
	}
	if d.unjailed {
		s, err := d.site(l, p)
		if err != nil {
			return nil, err
		}
		all = append(all, control{l.unjailed(ctx, s, d.command(l, s, args), nil), s.secret})
	}
	if d.granted != nil {
		s, err := d.site(l, p)
		if err != nil {
			return nil, err
		}
		all = append(all, control{l.jailed(ctx, s, d.granted(s), d.command(l, s, args), nil), s.secret})
	}
	return all, nil
}

func (d denial) snapshots(s *site) []string {
	var all []string
	for _, rel := range d.intact {
		all = append(all, snapshot(s.path(rel)))
	}
	return all
}

// after looks at the host once the execution's clean-up is over.
func (d denial) after(ctx context.Context, l *lane, s *site, o outcome, before []string) string {
	if len(d.intact) > 0 {
		if err := l.settle(ctx, s); err != nil {
			return fmt.Sprintf("the command after it could not run: %v", err)
		}
	}
	for i, now := range d.snapshots(s) {
		if now != before[i] {
			return "the host's " + d.intact[i] + " is not as it was"
		}
	}
	if d.extra != nil {
		return d.extra(l, s, o)
	}
	return ""
}

func outcomes(controls []control) []outcome {
	var all []outcome
	for _, c := range controls {
		all = append(all, c.outcome)
	}
	return all
}

// replace puts one site's secret in the place of another's, in hex as well.
func replace(raw, from, to string) string {
	return strings.NewReplacer(from, to, hex.EncodeToString([]byte(from)), hex.EncodeToString([]byte(to))).Replace(raw)
}
