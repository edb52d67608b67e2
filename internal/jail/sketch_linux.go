package jail

import (
	"maps"
	"reflect"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
	"sandboxd/internal/stage2/spec"
)

// sketch is a job on paper: what its request and the host's state led to, before anything
// was made on the host. The next job that asks for the same takes it over where every name
// that the survey met is as it was, which costs a fraction of surveying and planning anew.
// Nobody changes it.
type sketch struct {
	req      Request // Argv does not count
	mounts   uint64
	ground   roots.Writability
	reached  *roots.Reached
	readOnly func(path string) bool
	facts    host.Facts
	plan     plan.Plan
	audit    plan.Audit
	bwrap    *bwrap.Command
	spec     spec.Spec // without Argv
}

// maxSketch bounds what an idle helper remembers, in nodes of the host's file systems.
const maxSketch = 4096

// keep leaves the job's sketch for the next ones. Placeholders are each job's own, and
// without a jail the plan depends on the program.
func (j *job) keep() {
	if j.bwrap == nil || len(j.facts.Layout) > maxSketch || len(j.plan.Placeholders()) > 0 {
		return
	}
	j.sketch = &sketch{req: j.req, mounts: j.mounts, ground: j.ground, reached: j.reached.Note(), readOnly: j.readOnly,
		facts: j.facts, plan: j.plan, audit: j.audit, bwrap: j.bwrap, spec: j.spec}
	j.sketch.spec.Argv = nil
	j.host.sketch.Store(j.sketch)
}

// recall takes the last job's sketch over, if it is this one's too.
func (j *job) recall() bool {
	k := j.host.sketch.Load()
	if k == nil || !k.suits(j.req) {
		return false
	}
	j.mounts = j.host.mounts.current()
	if j.mounts != k.mounts {
		return false
	}
	reached := k.reached.Renew(k.ground)
	if reached == nil {
		return false
	}
	j.sketch, j.reached, j.readOnly, j.facts, j.plan, j.audit = k, reached, k.readOnly, k.facts, k.plan, k.audit
	j.bwrap, j.spec = k.bwrap, k.spec
	j.spec.Argv = j.req.Argv
	j.remember()
	return true
}

// suits says whether a request leads to the same where the host is the same.
func (k *sketch) suits(req Request) bool {
	return k.req.Cwd == req.Cwd && maps.Equal(k.req.Env, req.Env) && reflect.DeepEqual(k.req.Policy, req.Policy)
}
