//go:build linux || darwin

package stage2

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// session makes the process the leader of its own session and group, here and not
// by `bwrap --new-session`, which would make bubblewrap's init the leader. A
// process that leads one already (degraded mode starts it so) is left alone.
func (p *process) session() *spec.Failure {
	pid := unix.Getpid()
	if sid, err := unix.Getsid(0); err == nil && sid == pid {
		return nil
	}
	sid, err := unix.Setsid()
	if err != nil {
		return failure(spec.StepSession, "cannot start a session (start stage 2 by Setsid, not Setpgid)", err)
	}
	if sid != pid { // a filter around this process answered in the kernel's place
		return failure(spec.StepSession, "a session was started and does not show", nil)
	}
	return nil
}

func (p *process) chdir() *spec.Failure {
	if err := unix.Chdir(p.spec.Cwd); err != nil {
		return failure(spec.StepChdir, "cannot change to "+strconv.Quote(p.spec.Cwd)+" in the jail", err)
	}
	return nil
}

// lookup resolves argv[0] as execvp(3) does, but with the constructed PATH and
// inside the jail, and tells "not found" from "cannot run".
func (p *process) lookup() *spec.Failure {
	if len(p.spec.Argv) == 0 || p.spec.Argv[0] == "" {
		return refusal(spec.StepLookup, "argv[0] is empty", unix.ENOENT)
	}
	name := p.spec.Argv[0]
	if strings.IndexByte(name, '/') >= 0 {
		p.binary = name
		return runnable(name)
	}
	var found *spec.Failure // the first that is there but cannot run
	for _, dir := range p.spec.Path {
		candidate := strings.TrimSuffix(dir, "/") + "/" + name
		f := runnable(candidate)
		if f == nil {
			p.binary = candidate
			return nil
		}
		if found == nil && f.Errno != uint64(unix.ENOENT) && f.Errno != uint64(unix.ENOTDIR) {
			found = f
		}
	}
	if found != nil {
		return found
	}
	return refusal(spec.StepLookup, quoted(name)+" not found in the jail: looked in "+
		strconv.Itoa(len(p.spec.Path))+" directories of PATH", unix.ENOENT)
}

// runnable says why path cannot be executed, or nil. The mode is read by stat:
// access(2) of uid 0 answers from capabilities, and no mode bit at all means that
// execve answers EACCES even to them.
func runnable(path string) *spec.Failure {
	var st unix.Stat_t
	switch err := unix.Stat(path, &st); {
	case err == unix.ENOENT:
		return refusal(spec.StepLookup, quoted(path)+" does not exist in the jail", unix.ENOENT)
	case err != nil:
		return failure(spec.StepLookup, "cannot stat "+quoted(path), err)
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return refusal(spec.StepLookup, quoted(path)+" is a directory", unix.EISDIR)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return refusal(spec.StepLookup, quoted(path)+" is not a regular file", unix.EACCES)
	case st.Mode&0o111 == 0:
		return refusal(spec.StepLookup, quoted(path)+" is not executable: mode "+
			octal(uint32(st.Mode)&0o7777), unix.EACCES)
	}
	if err := unix.Access(path, unix.X_OK); err == unix.EACCES {
		return refusal(spec.StepLookup, quoted(path)+" may not be executed by this user, or its mount is noexec: mode "+
			octal(uint32(st.Mode)&0o7777), unix.EACCES)
	}
	return nil
}

// maxQuoted bounds a path in a message, in bytes before quoting: what follows it, the
// errno's name above all, must not be cut off (spec.MaxText).
const maxQuoted = 128

// quoted shows a path; a long one loses its middle.
func quoted(path string) string {
	if len(path) > maxQuoted {
		const half = maxQuoted / 2
		path = strings.ToValidUTF8(path[:half], "") + "…" + strings.ToValidUTF8(path[len(path)-half:], "")
	}
	return strconv.Quote(path)
}

func octal(mode uint32) string { return "0" + strconv.FormatUint(uint64(mode), 8) }
