// Package stage2 is the role `--exec`: the last process of a jail before the
// command, and the same process that the command then is. Inside the mounts that
// bubblewrap made (or, degraded, on the host itself) it verifies what it was
// promised, restricts itself, says on fd 4 what the kernel now enforces, and
// executes the command once the helper has answered.
//
// The order of its steps is fixed, see run. Nothing here is best effort: a kernel
// feature that is missing is a skip in the report, an error from one that is there
// ends the execution with a spec.Failure, and a silent end means that stage 2 died.
//
// It does not protect against the helper: the specification is believed. It makes
// no namespace and no mount; a jail that was not built is noticed, not repaired.
// The restrictions hold for the thread that becomes the command, so nothing of the
// jail's promises covers stage 2's own other threads before execve.
package stage2

// usage is what a person who types the role is told.
const usage = "sandboxd: --exec is the helper's own last step inside a jail; it needs the specification on fd 3, a socket on fd 4 and the command's streams on fds 5 to 7\n"

// Exit statuses. The helper reads fd 4, never these.
const (
	exitFailed = 1
	exitUsage  = 2
)
