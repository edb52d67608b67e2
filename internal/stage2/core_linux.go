package stage2

import (
	"errors"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// corePattern is what the kernel does with a crash: core(5).
const corePattern = "/proc/sys/kernel/core_pattern"

// cores keeps a crash from writing a core file, which would carry the command's memory to
// wherever the host's core_pattern sends it. Where that is a program of root's, which a
// crash would start outside the jail and its ceilings, a limit of 0 does not keep the
// kernel from it; 1 does, and is too little for a file (core(5), coredump.c). The filter
// keeps it from being lowered. A hard limit of 0 that this process was started under
// cannot be raised, so then it is said; and so is a socket, for which the kernel asks no
// limit (Linux 6.16).
func (p *process) cores() *spec.Failure {
	held, err := lower(unix.RLIMIT_CORE, 1, 1)
	if err != nil {
		return failure(spec.StepRlimit, "cannot set RLIMIT_CORE", err)
	}
	switch to := crashesGo(); {
	case to == '@':
		p.skip("platform-restrictions", "the host's "+corePattern+" sends a crash of the command, with its memory, to a "+
			"socket, which no limit keeps the kernel from; have the host name a file or a program there")
	case to != 0 && held == 0:
		p.skip("platform-restrictions", "sandboxd was started under a hard limit of 0 for core files, and at 0 the kernel "+
			"starts the host's handler in "+corePattern+" for a crash of the command; start it under a hard limit of 1 or more")
	}
	return nil
}

// crashesGo gives where a crash goes: '|' to a program, '@' to a socket, 0 to a file or
// nowhere. What cannot be read may be a program.
func crashesGo() byte {
	fd, err := unix.Open(corePattern, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) { // a kernel without core files
		return 0
	}
	if err != nil {
		return '|'
	}
	defer unix.Close(fd)
	var first [1]byte
	switch n, err := unix.Read(fd, first[:]); {
	case err != nil:
		return '|'
	case n == 1 && (first[0] == '|' || first[0] == '@'):
		return first[0]
	}
	return 0
}
