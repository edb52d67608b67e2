//go:build linux || darwin

package stage2

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

var errNotShown = errors.New("it was set and does not show")

// ownRlimits sets the ceilings that each process has for itself on every system.
func (p *process) ownRlimits() *spec.Failure {
	if n := p.spec.FsizeBytes; n != 0 {
		held, err := lower(unix.RLIMIT_FSIZE, n, n)
		if err != nil {
			return failure(spec.StepRlimit, "cannot set RLIMIT_FSIZE", err)
		}
		p.report.RlimitFsize, p.report.FsizeInherited = true, stricter(held, n)
	}
	if n := min(p.spec.CPUSeconds, maxCPUSeconds); n != 0 {
		// SIGXCPU at the soft limit, SIGKILL at the hard one a second later.
		held, err := lower(unix.RLIMIT_CPU, n, n+1)
		if err != nil {
			return failure(spec.StepRlimit, "cannot set RLIMIT_CPU", err)
		}
		p.report.RlimitCPU, p.report.CPUInherited = true, stricter(held, n)
	}
	return nil
}

// maxCPUSeconds is some 584 years. Of more than that, in nanoseconds, the kernel takes the
// lower 64 bits (posix-cpu-timers.c), which can be none at all.
const maxCPUSeconds = math.MaxUint64/1_000_000_000 - 1

// stricter is the limit in force where it is below the one that was asked for, else 0.
func stricter(held, asked uint64) uint64 {
	if held < asked {
		return held
	}
	return 0
}
