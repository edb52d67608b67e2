package stage2

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// rlimits sets the ceilings that hold for each process by itself. Memory and
// processes are the cgroup's: RLIMIT_AS kills node, Java and Go at start, and
// RLIMIT_NPROC counts everything of the user (setrlimit(2)).
func (p *process) rlimits() *spec.Failure {
	if f := p.ownRlimits(); f != nil {
		return f
	}
	if f := p.cores(); f != nil {
		return f
	}
	if err := p.giveUpRaising(); err != nil {
		return failure(spec.StepRlimit, "cannot give up CAP_SYS_RESOURCE, with which the command could raise its limits", err)
	}
	return nil
}

// lower sets a limit, never above the hard limit that is already there: an
// inherited stricter ceiling stays, which still holds what was asked for. It gives the
// soft limit that is in force then, read back: a filter around this process can answer
// the call without the kernel.
func lower(resource int, soft, hard uint64) (held uint64, err error) {
	now, after := noLimit, noLimit
	if err := unix.Prlimit(0, resource, nil, &now); err != nil {
		return 0, err
	}
	want := unix.Rlimit{Cur: min(soft, now.Max), Max: min(hard, now.Max)}
	if err := unix.Prlimit(0, resource, &want, nil); err != nil {
		return 0, err
	}
	if err := unix.Prlimit(0, resource, nil, &after); err != nil {
		return 0, err
	}
	if now == noLimit || after != want {
		return 0, errNotShown
	}
	return after.Cur, nil
}

// noLimit is what no limit is: soft above hard.
var noLimit = unix.Rlimit{Cur: 1, Max: 0}

// giveUpRaising takes this thread's right to raise hard limits away. Without a jail a
// command of root's would have it; no_new_privs keeps execve from giving it back.
func (p *process) giveUpRaising() error {
	if p.before.caps == 0 {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // of 32 capabilities each
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	const bit = 1 << unix.CAP_SYS_RESOURCE
	if (sets[0].Permitted|sets[0].Inheritable)&bit == 0 {
		return nil
	}
	sets[0].Permitted &^= bit
	sets[0].Effective &^= bit
	sets[0].Inheritable &^= bit
	return unix.Capset(&header, &sets[0])
}
