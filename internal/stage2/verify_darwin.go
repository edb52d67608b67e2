package stage2

import (
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/stage2/spec"
)

// seatbelt tries what the profile must deny and what it must allow: a sandbox-exec
// that merely executed its argument would get here too, and a profile with unresolved
// paths is accepted and grants nothing.
func (p *process) seatbelt() *spec.Failure {
	if !p.spec.Jailed {
		return nil
	}
	if fd, err := unix.Open(p.spec.Denied, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		unix.Close(fd)
		return failure(spec.StepSeatbelt, strconv.Quote(p.spec.Denied)+" can be opened: the profile is not in force", nil)
	} else if err != unix.EPERM && err != unix.EACCES {
		return failure(spec.StepSeatbelt, "cannot tell whether the profile is in force: opening "+strconv.Quote(p.spec.Denied)+" failed otherwise", err)
	}
	fd, err := unix.Open(p.spec.Allowed, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return failure(spec.StepSeatbelt, "cannot open "+strconv.Quote(p.spec.Allowed)+", which the profile allows", err)
	}
	unix.Close(fd)
	p.report.Seatbelt = true
	return nil
}

// notHidden says that a protected path shows. Its absence and its denial look alike
// from inside, and both are what was asked for.
func notHidden(c spec.Check) (string, error) {
	var st unix.Stat_t
	if unix.Lstat(c.Path, &st) == nil {
		return "is not denied: it can be seen in the jail", nil
	}
	return "", nil
}

// notSame says how the inode at c.Path differs from the one the helper reached.
func notSame(c spec.Check) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(c.Path, &st); err != nil {
		if c.What == spec.CheckPin && err == unix.ENOENT && c.ID == (host.ID{}) {
			return "", nil // the profile pins names, whether they exist or not
		}
		return "cannot be seen in the jail", err
	}
	if got := (host.ID{Dev: uint64(uint32(st.Dev)), Ino: st.Ino}); c.ID != (host.ID{}) && got != c.ID {
		return "is another inode than the one that was checked: it was replaced meanwhile; run again", nil
	}
	if c.Rdev != 0 && uint64(uint32(st.Rdev)) != c.Rdev {
		return "is another device than the one that was checked", nil
	}
	return "", nil
}
