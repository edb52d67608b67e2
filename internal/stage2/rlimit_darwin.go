package stage2

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// Tags of the ceilings that may be lacking (protocol/tags.toml).
const (
	tagAddressSpace = "rlimit-address-space"
	tagProcesses    = "rlimit-processes"
)

// rlimits sets the ceilings of setrlimit(2). There are no cgroups, so memory and
// processes are tried here as well: the helper has judged whether the number of the
// user's processes leaves room for the second.
func (p *process) rlimits() *spec.Failure {
	if f := p.ownRlimits(); f != nil {
		return f
	}
	if n := p.spec.MemBytes; n != 0 {
		// The kernel answers EINVAL to a finite one below what is mapped already, and
		// the shared cache alone is larger than most ceilings.
		p.report.RlimitAddressSpace = p.attempt(tagAddressSpace, "RLIMIT_AS", unix.RLIMIT_AS, n)
	}
	if n := p.spec.Pids; n != 0 {
		p.report.RlimitProcesses = p.attempt(tagProcesses, "RLIMIT_NPROC", unix.RLIMIT_NPROC, n)
	}
	if _, err := lower(unix.RLIMIT_CORE, 0, 0); err != nil {
		return failure(spec.StepRlimit, "cannot set RLIMIT_CORE", err)
	}
	return nil
}

// attempt sets a ceiling that this kernel may not take; then it is a skip.
func (p *process) attempt(tag, name string, resource int, n uint64) bool {
	_, err := lower(resource, n, n)
	if err == nil {
		return true
	}
	p.report.Skips = append(p.report.Skips, spec.Skip{Tag: tag, Reason: "the kernel refuses a finite " + name + ": " + describe(err)})
	return false
}

// lower sets a limit, never above the hard limit that is already there, and gives the
// soft limit that is in force then, read back: the kernel lowers some by itself.
func lower(resource int, soft, hard uint64) (held uint64, err error) {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return 0, err
	}
	want := unix.Rlimit{Cur: min(soft, now.Max), Max: min(hard, now.Max)}
	if err := unix.Setrlimit(resource, &want); err != nil {
		return 0, err
	}
	var after unix.Rlimit
	if err := unix.Getrlimit(resource, &after); err != nil {
		return 0, err
	}
	if after.Cur > want.Cur || after.Max > want.Max {
		return 0, errNotShown
	}
	return after.Cur, nil
}
