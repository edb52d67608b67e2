package stage2

import (
	"errors"

	"golang.org/x/sys/unix"

	"sandboxd/internal/landlock"
	"sandboxd/internal/seccomp"
	"sandboxd/internal/stage2/spec"
)

func (p *process) skip(tag, reason string) {
	p.report.Skips = append(p.report.Skips, spec.Skip{Tag: tag, Reason: reason})
}

// outside adds to the reason of something that this kernel seems not to have that it may
// have it: whoever started the helper can have put a filter around it that says so.
func (p *process) outside(reason string) string {
	if reason == "" {
		reason = "the kernel names none"
	}
	if p.before.seccomp != unix.SECCOMP_MODE_FILTER {
		return reason
	}
	return reason + "; or the system call filter that sandboxd was started under hides it"
}

func (p *process) buildLandlock() *spec.Failure {
	if !p.spec.Landlock.Enabled {
		p.skip("landlock", p.outside(p.spec.Landlock.Reason))
		return nil
	}
	rules, skips, err := landlock.Build(p.spec.Landlock)
	if err != nil {
		return failure(spec.StepLandlock, "cannot build the ruleset", err)
	}
	if rules == nil {
		for i := range skips {
			skips[i].Reason = p.outside(skips[i].Reason)
		}
	}
	p.rules = rules
	p.report.Skips = append(p.report.Skips, skips...)
	return nil
}

// noNewPrivs also stops setuid programs inside the jail (prctl(2)).
func (p *process) noNewPrivs() *spec.Failure {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return failure(spec.StepNoNewPrivs, "cannot set no_new_privs", err)
	}
	return nil
}

func (p *process) enforceLandlock() *spec.Failure {
	if p.rules == nil {
		return nil
	}
	if err := p.rules.Enforce(); err != nil {
		return failure(spec.StepLandlock, "cannot restrict this thread", err)
	}
	// A filter around this process can answer without doing anything, but then to this
	// as well, which names no ruleset.
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ^uintptr(0), 0, 0); errno == 0 {
		return failure(spec.StepLandlock, "the ruleset was enforced and cannot have been: the kernel is not asked at all", nil)
	}
	// The ABI of the call that succeeded, not of a probe.
	p.report.LandlockABI = uint64(p.rules.ABI)
	p.report.LandlockNet = p.rules.Net
	p.report.LandlockScope = p.rules.Scope
	p.report.LandlockUnix = p.rules.Unix
	return nil
}

func (p *process) seccomp() *spec.Failure {
	if p.rules == nil {
		// Landlock alone keeps a command off bubblewrap's init and off
		// processes outside; without it the filter has to.
		p.spec.Seccomp.DenyTrace = true
	}
	// Asked beforehand, because a failed Install may leave a filter in force.
	if err := seccomp.Supported(); errors.Is(err, seccomp.ErrUnsupported) {
		why := p.outside(err.Error())
		p.skip("seccomp-hardening", why)
		if p.spec.Seccomp.DenyNet {
			p.skip("seccomp-net", why)
		}
		return nil
	}
	if err := seccomp.Install(p.spec.Seccomp); err != nil {
		return failure(spec.StepSeccomp, "cannot install the filters", err)
	}
	p.report.SeccompHardening = true
	p.report.SeccompNet = p.spec.Seccomp.DenyNet
	return nil
}
