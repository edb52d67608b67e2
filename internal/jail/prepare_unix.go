//go:build linux || darwin

package jail

import (
	"fmt"
	"slices"
	"strings"

	"sandboxd/internal/env"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/report"
	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

// draft makes the plan, and of the specification what does not depend on how the jail is
// made.
func (j *job) draft() error {
	var err error
	if j.plan, err = plan.Build(j.req.Policy, j.facts); err != nil {
		return err
	}
	for i, q := range j.plan.Asked { // of a device or socket it says nothing
		if q.Node.Kind == host.Dir || q.Node.Kind == host.File {
			j.plan.Asked[i].ReadOnly = j.readOnly(q.Path)
		}
	}
	j.audit = plan.AuditOf(j.plan, j.req.Policy).On(j.facts)
	cwd, err := j.plan.CheckCwd(j.req.Cwd, j.facts)
	if err != nil {
		return err
	}
	e := env.Build(j.environment())
	j.spec = spec.Spec{Command: spec.Command{Argv: j.req.Argv, Env: e.Env, Path: e.Path, Cwd: cwd},
		FsizeBytes: j.req.Policy.Limits.FsizeBytes, CPUSeconds: j.req.Policy.Limits.CPUSeconds}
	return nil
}

// demand refuses, before anything runs, what --require-enforced cannot accept.
func (j *job) demand() error {
	if !j.host.RequireEnforced {
		return nil
	}
	required := j.required()
	known := report.Foreseen(j.outcome(ended{}))
	if missing := protocol.Missing(required, known, j.host.AcceptSkip); len(missing) > 0 {
		return refused("cannot enforce %s on this host, and --require-enforced demands it; --accept-skip TAG names what may be missing",
			strings.Join(missing, ", "))
	}
	for _, tag := range required {
		if !slices.Contains(j.host.AcceptSkip, tag) {
			j.spec.Require = append(j.spec.Require, tag)
		}
	}
	return nil
}

// label names the policy list that a path stands in.
func label(p protocol.Policy) func(string) string {
	return func(path string) string {
		for _, l := range []struct {
			name  string
			paths []string
		}{{"writable_roots", p.WritableRoots}, {"readable_roots", p.ReadableRoots}, {"protected", p.Protected}} {
			if i := slices.Index(l.paths, path); i >= 0 {
				return fmt.Sprintf("%s[%d]", l.name, i)
			}
		}
		for i, m := range p.Mounts {
			if m.Path == path {
				return fmt.Sprintf("mounts[%d].path", i)
			}
		}
		if path == p.Scratch {
			return "scratch"
		}
		return ""
	}
}
