//go:build linux || darwin

package stage2

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// ownRlimits sets the ceilings that each process has for itself on every system.
func (p *process) ownRlimits() *spec.Failure {
	if n := p.spec.FsizeBytes; n != 0 {
		held, err := lower(unix.RLIMIT_FSIZE, n, n)
		if err != nil {
			return failure(spec.StepRlimit, "cannot set RLIMIT_FSIZE", err)
		}
		p.report.RlimitFsize, p.report.FsizeInherited = true, stricter(held, n)
	}
	if n := p.spec.CPUSeconds; n != 0 {
		// SIGXCPU at the soft limit, SIGKILL at the hard one a second later.
		hard := n
		if n < unix.RLIM_INFINITY {
			hard++
		}
		held, err := lower(unix.RLIMIT_CPU, n, hard)
		if err != nil {
			return failure(spec.StepRlimit, "cannot set RLIMIT_CPU", err)
		}
		p.report.RlimitCPU, p.report.CPUInherited = true, stricter(held, n)
	}
	return nil
}

// stricter is the limit in force where it is below the one that was asked for, else 0.
func stricter(held, asked uint64) uint64 {
	if held < asked {
		return held
	}
	return 0
}
