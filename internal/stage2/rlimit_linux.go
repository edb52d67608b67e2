package stage2

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// rlimits sets the ceilings that hold for each process by itself. Memory and
// processes are the cgroup's: RLIMIT_AS kills node, Java and Go at start, and
// RLIMIT_NPROC counts everything of the user (setrlimit(2)).
func (p *process) rlimits() *spec.Failure {
	if n := p.spec.FsizeBytes; n != 0 {
		if err := lower(unix.RLIMIT_FSIZE, n, n); err != nil {
			return failure(spec.StepRlimit, "cannot set RLIMIT_FSIZE", err)
		}
		p.report.RlimitFsize = true
	}
	if n := p.spec.CPUSeconds; n != 0 {
		// SIGXCPU at the soft limit, SIGKILL at the hard one a second later.
		hard := n
		if n < unix.RLIM_INFINITY {
			hard++
		}
		if err := lower(unix.RLIMIT_CPU, n, hard); err != nil {
			return failure(spec.StepRlimit, "cannot set RLIMIT_CPU", err)
		}
		p.report.RlimitCPU = true
	}
	// A core file would carry the command's memory to wherever the host's
	// core_pattern sends it.
	if err := lower(unix.RLIMIT_CORE, 0, 0); err != nil {
		return failure(spec.StepRlimit, "cannot set RLIMIT_CORE", err)
	}
	return nil
}

// lower sets a limit, never above the hard limit that is already there: an
// inherited stricter ceiling stays, which still holds what was asked for.
func lower(resource int, soft, hard uint64) error {
	var now unix.Rlimit
	if err := unix.Prlimit(0, resource, nil, &now); err != nil {
		return err
	}
	want := unix.Rlimit{Cur: min(soft, now.Max), Max: min(hard, now.Max)}
	return unix.Prlimit(0, resource, &want, nil)
}
