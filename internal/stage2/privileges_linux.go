package stage2

import (
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// verifyPrivileges looks for what --cap-drop ALL and --disable-userns must have taken
// away. With a capability in the jail's own user namespace a command unmounts a mask,
// and in a user namespace of its own it has all of them.
func (p *process) verifyPrivileges() *spec.Failure {
	if p.spec.NoCaps {
		if p.before.capSets != 5 {
			return failure(spec.StepPrivileges, "cannot read this thread's capabilities from /proc/thread-self/status", nil)
		}
		if p.before.caps != 0 {
			return failure(spec.StepPrivileges, "the capabilities 0x"+strconv.FormatUint(p.before.caps, 16)+
				" are left: bubblewrap did not drop them", nil)
		}
		p.report.NoCaps = true
	}
	if p.spec.NoUserns {
		possible, err := tryUserns()
		if err != nil {
			return failure(spec.StepPrivileges, "cannot find out whether a user namespace can be made", err)
		}
		if possible {
			return failure(spec.StepPrivileges, "a user namespace can be made: bubblewrap did not disable them", nil)
		}
		p.report.NoUserns = true
	}
	return nil
}

// tryUserns makes one, in a child that ends at once. There is nothing to read in its
// place: the limit that stops it is the parent namespace's, and the file below
// /proc/sys/user shows the jail's own. A denied attempt costs 4 µs, because the kernel
// makes the credentials before it copies anything.
func tryUserns() (possible bool, err error) {
	pid, errno := forkUserns()
	switch errno {
	case 0:
		for {
			if _, err := unix.Wait4(int(pid), nil, 0, nil); err != unix.EINTR {
				return true, nil
			}
		}
	case unix.ENOSPC, unix.EUSERS, unix.EPERM: // the limit (user_namespaces(7)), before 4.9, a security module
		return false, nil
	}
	return false, errno
}

// forkUserns must neither grow its stack nor allocate in the child, which shares
// nothing with Go's runtime but a copy of its memory.
//
//go:nosplit
//go:norace
func forkUserns() (uintptr, unix.Errno) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno == 0 && pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return pid, errno
}
