package jail

import (
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/cgroup"
	"sandboxd/internal/env"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/policy"
	"sandboxd/internal/report"
	"sandboxd/internal/roots"
	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

// job is one execution between its policy and its processes.
type job struct {
	host    *Host
	req     Request
	facts   host.Facts
	mounts  uint64            // version of the host's mount table before the survey
	ground  roots.Writability // what the survey was asked with
	reached *roots.Reached
	plan    plan.Plan
	audit   plan.Audit
	sketch  *sketch // what this job was made from, or others like it can be
	places  *roots.Placeholders
	stamps  []stamp        // of the plan's operations, once the placeholders are there
	looked  time.Time      // when they were taken; zero: the jail was a standby's
	built   time.Time      // when the jail stood; zero: it never did
	bwrap   *bwrap.Command // nil: degraded
	spec    spec.Spec
	standby bool // for a jail that waits for a command: nothing has asked for it yet
	holds   bool // the end of the helper waits for what this standby puts on the host

	readOnly func(path string) bool // the host has it mounted so

	spare   *cgroup.Group // of a standby, with the same ceilings
	group   *cgroup.Group // nil: no ceilings, or noGroup says why not
	noGroup string
	unheld  []string // what is not as the ceilings that were set promise
}

// prepare turns a request into everything that spawning needs, or refuses.
// Nothing runs. The job must be released in either case.
func (h *Host) prepare(req Request, k *keeper) (*job, error) {
	j := &job{host: h, req: req, facts: h.Facts}
	if k != nil && k.job.req.Policy.Limits == req.Policy.Limits {
		j.spare = k.job.group
	}
	return j, j.build()
}

func (j *job) build() error {
	recalled := j.recall()
	if !recalled {
		if err := j.devise(); err != nil {
			return err
		}
	}
	j.stamps = j.look()
	if !recalled {
		j.spec.Checks = j.checks()
		j.restrict()
		j.keep()
	}
	if j.standby && (!j.parkable() || !j.host.hold()) {
		return errNoStandby
	}
	j.holds = j.standby
	if err := j.ceilings(); err != nil {
		return err
	}
	return j.demand()
}

// devise makes the plan from a look at everything.
func (j *job) devise() error {
	if err := j.survey(); err != nil {
		return err
	}
	if err := j.draft(); err != nil {
		return err
	}
	if j.jailed() {
		return j.render()
	}
	return nil
}

// jailed says whether bubblewrap is used. Only an established absence means
// degraded: where the probe is unsure, bubblewrap is tried and may fail.
func (j *job) jailed() bool { return j.facts.Bwrap.State != host.Absent }

// survey reaches every path that planning looks at and keeps its descriptors.
func (j *job) survey() error {
	p := j.req.Policy
	j.facts.Cwd = j.req.Cwd
	j.mounts = j.host.mounts.current()
	mounts, _, err := j.host.mounts.now()
	if err != nil {
		return err
	}
	j.ground = roots.Writability{
		Mounts: mounts, Private: &j.host.private,
		Paths: policy.Writable(p), Shared: roots.SharedDirs(j.host.Mutable),
		// A PATH entry is left out, and never a refusal.
		Optional: slices.Concat(env.Dirs(j.req.Env, j.host.path), j.program(), plan.Sockets(j.facts)),
		Narrow:   plan.Narrow(p),
		Memory:   &j.host.memory, Label: label(p),
	}
	reached, err := roots.Survey(plan.Paths(p, j.facts), j.ground)
	if err != nil {
		return err
	}
	j.reached, j.readOnly = reached, roots.ReadOnly(mounts)
	j.facts.Layout, j.facts.Aliases, j.facts.Kernel = reached.Layout(), reached.Aliases(), reached.Kernel()
	j.facts.Private, j.facts.PrivateMore = reached.Private()
	j.remember()
	return nil
}

// remember notes what the policy lets a command write: what has run nothing let nothing
// be written.
func (j *job) remember() {
	if !j.standby {
		j.host.memory.Add(j.reached)
	}
}

func (j *job) environment() env.Input {
	in := env.Input{
		Allow: j.req.Policy.EnvAllow, Request: j.req.Env, HelperPath: j.host.path,
		Layout: j.facts.Layout, Scratch: j.plan.Scratch,
	}
	in.Writable, in.Tmpfs = j.plan.Writable()
	if j.jailed() {
		in.View = j.plan.Access
	} else {
		in.Scratch, in.Tmpfs = degradedScratch(j.req.Policy), false
	}
	return in
}

// degradedScratch is the scratch of a host that cannot mount one.
func degradedScratch(p protocol.Policy) string {
	if p.Scratch == protocol.ScratchTmpfs {
		return ""
	}
	return p.Scratch
}

// program is what a command without a jail is started from, where its request says so.
func (j *job) program() []string {
	if program := j.req.Argv[0]; !j.jailed() && strings.HasPrefix(program, "/") && path.Clean(program) == program {
		return []string{program}
	}
	return nil
}

// required lists what the policy promises; a kernel without Landlock is no fault of it.
func (j *job) required() []string {
	has := func(tag string) bool { return tag != protocol.TagLandlock || j.facts.LandlockABI > 0 }
	return protocol.Required(j.req.Policy, "linux", has)
}

// outcome is what the report is made from.
func (j *job) outcome(e ended) report.Outcome {
	o := report.Outcome{
		Policy: j.req.Policy, Platform: "linux", Jailed: j.bwrap != nil, NoJail: j.facts.Bwrap.Reason, Root: j.facts.UID == 0,
		NestedUserns: j.host.AllowNestedUserns, Checks: j.spec.Checks,
		NoCaps: j.spec.NoCaps, NoUserns: j.spec.NoUserns, Mounts: j.spec.View.Required(), Report: e.report, Audit: j.audit, Extra: e.found,
		Cgroup: j.held(),
	}
	for _, reason := range j.unheld {
		o.Extra = append(o.Extra, plan.Skip{Tag: protocol.TagCgroupV2, Reason: reason})
	}
	if j.bwrap != nil {
		o.Extra = append(o.Extra, j.bwrap.Skips...)
	}
	return o
}

// release takes what the execution put on the host away again.
func (j *job) release() error {
	err := errors.Join(j.dissolve(), j.places.Release())
	err = errors.Join(err, j.sweepStandIns())
	if j.reached != nil {
		err = errors.Join(err, j.reached.Close())
	}
	return err
}
