//go:build linux || darwin

package jail

import (
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// stepFailed puts a step of stage 2 that failed into the caller's words; those that only
// one system has are told by their own.
func stepFailed(f *spec.Failure) *Error {
	switch f.Step {
	case spec.StepExec, spec.StepLookup:
		return spawnFailed("exec: %s", stepText(f))
	case spec.StepRequire:
		return refused("%s", stepText(f))
	}
	return spawnFailed("stage2: %s: %s", f.Step, stepText(f))
}

// stepText is what stage 2 said, with the errno's name.
func stepText(f *spec.Failure) string {
	if f.Errno == 0 || strings.Contains(f.Msg, errnoName(f.Errno)) {
		return f.Msg
	}
	return fmt.Sprintf("%s (%s)", f.Msg, errnoName(f.Errno))
}

func errnoName(e uint64) string {
	if n := unix.ErrnoName(syscall.Errno(e)); n != "" {
		return n
	}
	return fmt.Sprintf("errno %d", e)
}
