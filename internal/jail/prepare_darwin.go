package jail

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"sandboxd/internal/env"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/policy"
	"sandboxd/internal/report"
	"sandboxd/internal/roots"
	"sandboxd/internal/seatbelt"
	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

// job is one execution between its policy and its process.
type job struct {
	host    *Host
	req     Request
	facts   host.Facts
	scratch *scratchDir
	reached *roots.Reached
	plan    plan.Plan
	audit   plan.Audit
	profile *seatbelt.Profile // nil: degraded
	spec    spec.Spec
	file    string      // the profile's file, "" where it is an argument
	skips   []plan.Skip // ceilings that cannot be set
}

// readOnly is not known here: asking a file system that hangs would hang.
func (j *job) readOnly(string) bool { return false }

// prepare turns a request into everything that spawning needs, or refuses. The job
// has to be released in both cases.
func (h *Host) prepare(req Request) (*job, error) {
	j := &job{host: h, req: req, facts: h.Facts}
	return j, j.build()
}

func (j *job) build() error {
	var err error
	// Made always: the witness lies beside it.
	if j.scratch, err = newScratch(); err != nil {
		return err
	}
	j.facts.ScratchDir = j.scratch.dir
	if err := j.survey(); err != nil {
		return err
	}
	if err := j.draft(); err != nil {
		return err
	}
	j.spec.MemBytes, j.spec.Pids = j.req.Policy.Limits.MemBytes, j.req.Policy.Limits.Pids
	j.processes()
	if j.jailed() {
		if err := j.render(); err != nil {
			return err
		}
	}
	j.spec.Checks = j.checks()
	return j.demand()
}

// jailed says whether sandbox-exec is used: where the probe is unsure it is tried.
func (j *job) jailed() bool { return j.host.profiles != host.Absent }

func (j *job) survey() error {
	p := j.req.Policy
	j.facts.Cwd = j.req.Cwd
	reached, err := roots.Survey(plan.Paths(p, j.facts), roots.Writability{
		// Every command writes the user's directories, so a link there may be planted.
		Paths: policy.Writable(p), Shared: append(roots.SharedDirs(j.host.Mutable), j.host.userDirs...),
		Optional: env.Dirs(j.req.Env, j.host.path),
		Memory:   &j.host.memory, Label: label(p),
	})
	if err != nil {
		return err
	}
	j.reached = reached
	j.facts.Layout = reached.Layout()
	j.host.memory.Add(reached)
	return nil
}

func (j *job) environment() env.Input {
	in := env.Input{
		Allow: j.req.Policy.EnvAllow, Request: j.req.Env, HelperPath: j.host.path,
		Layout: j.facts.Layout, Scratch: j.plan.Scratch,
	}
	dirs, _ := j.plan.Writable()
	in.Writable = append(slices.Clone(j.host.userDirs), dirs...)
	if j.jailed() {
		in.View = j.view
	}
	return in
}

// view says what the command may do at a physical path.
func (j *job) view(path string) (readable, writable bool) {
	switch j.plan.At(path).Effect {
	case plan.ReadWrite, plan.Private:
		return true, true
	case plan.ReadOnly:
		return true, false
	case plan.Masked:
		return false, false
	}
	mine := slices.ContainsFunc(j.host.userDirs, func(dir string) bool { return host.Beneath(path, dir) })
	return mine, mine
}

func (j *job) render() error {
	p, err := seatbelt.Render(j.plan, seatbelt.Options{
		NetFull: j.req.Policy.Network.Mode == protocol.NetFull,
		Layout:  j.facts.Layout, Helper: j.facts.HelperPath, UserDirs: j.host.userDirs, Witness: j.scratch.witness.Name(),
	})
	if err != nil {
		return err
	}
	j.profile = &p
	j.spec.Jailed, j.spec.Denied, j.spec.Allowed = true, j.scratch.witness.Name(), j.facts.HelperPath
	return nil
}

// processes decides about RLIMIT_NPROC, which counts all of the user's.
func (j *job) processes() {
	if j.spec.Pids == 0 {
		return
	}
	running := -1
	if rows, err := unix.SysctlKinfoProcSlice("kern.proc.ruid", j.facts.UID); err == nil {
		running = len(rows)
	}
	if why := seatbelt.RoomForProcesses(running, j.spec.Pids); why != "" {
		j.spec.Pids = 0
		j.skips = append(j.skips, plan.Skip{Tag: protocol.TagRlimitProcesses, Reason: why})
	}
}

// checks is what stage 2 looks at from inside; a mask only where a profile denies it.
func (j *job) checks() []spec.Check {
	return slices.DeleteFunc(j.plan.Checks(), func(c spec.Check) bool {
		return !j.spec.Jailed && c.What != spec.CheckRoot && c.What != spec.CheckMount
	})
}

// required lists what the policy promises.
func (j *job) required() []string { return protocol.Required(j.req.Policy, "darwin", nil) }

// outcome is what the report is made from.
func (j *job) outcome(e ended) report.Outcome {
	extra := append(slices.Clone(j.skips), e.found...)
	return report.Outcome{Policy: j.req.Policy, Platform: "darwin", Jailed: j.profile != nil, NoJail: j.host.noJail,
		Checks: j.spec.Checks, Report: e.report, Audit: j.audit, Extra: extra}
}

// release takes what the execution put on the host away again.
func (j *job) release() error {
	err := errors.Join(j.removeProfile(), j.scratch.remove())
	if j.reached != nil {
		err = errors.Join(err, j.reached.Close())
	}
	return err
}

// command is what is started: sandbox-exec, which becomes stage 2, or stage 2 itself.
func (j *job) command() (path string, argv []string, err error) {
	helper := j.facts.HelperPath
	if helper == "" {
		return "", nil, fmt.Errorf("cannot tell where the helper's own program is")
	}
	if j.profile == nil {
		return helper, []string{"sandboxd", "--exec"}, nil
	}
	if len(j.profile.Text) > seatbelt.InlineLimit {
		if err := j.writeProfile(); err != nil {
			return "", nil, err
		}
	}
	argv = append([]string{"sandbox-exec"}, j.profile.Args(j.file)...)
	argv = append(argv, helper, "--exec")
	if n := seatbelt.ArgvSize(argv); n > seatbelt.ArgvLimit {
		return "", nil, refused("cannot run with this policy: its paths take %d bytes of sandbox-exec's arguments, and at most %d fit; name fewer paths", n, seatbelt.ArgvLimit)
	}
	return seatbelt.Path, argv, nil
}
