package stage2

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"sandboxd/internal/landlock"
	"sandboxd/internal/stage2/spec"
)

// Main is the role `--exec`. It returns only when the command does not run: with
// 2 when its descriptors are not those of a stage 2, else with 1 after a failure
// went to fd 4 (or nobody was there to read it).
func Main() int {
	// Landlock, no_new_privs and the signal mask belong to a thread, and execve
	// keeps those of the thread that calls it: never leave this one.
	runtime.LockOSThread()
	return begin()
}

// reportType is the kind of fd 4.
const reportType = unix.SOCK_SEQPACKET

// process is what the steps share.
type process struct {
	spec   spec.Spec
	report spec.Report
	status int // descriptor of this thread's status file, opened before Landlock
	before status
	binary string // argv[0] resolved
	rules  *landlock.Ruleset
	alone  bool // the helper is gone

	allowed bool // the word came with the command
}

// run makes the steps in the one order that works. It returns what failed, or nil
// when the helper is gone and nobody is left to run anything for.
func run() *spec.Failure {
	s, f := readSpec()
	if f != nil {
		return f
	}
	if !s.Standby && !send(spec.Begun{}.Append(nil)) {
		return nil
	}
	p := &process{spec: s}
	command := []func() *spec.Failure{
		// The directory and argv[0] are looked up in the view that the mounts made.
		p.chdir,
		p.lookup,
	}
	policy := []func() *spec.Failure{
		p.openStatus,
		p.look,
		p.session, // where this is no jail it may lead a group, and that is not the reason
		p.verify,
		// Building opens paths, enforcing comes after the last open of ours.
		p.buildLandlock,
		p.rlimits,
		p.signals,
		p.noNewPrivs, // both Landlock and seccomp refuse without
		p.enforceLandlock,
		p.descriptors,
		// After everything that makes calls a filter might deny.
		p.seccomp,
		p.readBack,
		p.require,
	}
	var steps []func() *spec.Failure
	if s.Standby {
		// stat(2), access(2) and chdir(2) answer the same under Landlock.
		command = append([]func() *spec.Failure{p.standby, p.verify}, command...)
		steps = append(policy, command...)
	} else {
		steps = append(command, policy...)
	}
	for _, step := range steps {
		if f := step(); f != nil {
			return f
		}
		if p.alone {
			return nil
		}
	}
	// Not before seccomp: a report means that everything in it holds, and end of
	// file without one that stage 2 died on the way.
	if !send(p.report.Append(nil)) || !p.allowed && !allowed() {
		return nil
	}
	// syscall.Exec also puts back the soft RLIMIT_NOFILE that Go's runtime raised.
	err := syscall.Exec(p.binary, p.spec.Argv, p.spec.Env)
	return execFailure(p.binary, err)
}
