//go:build linux || darwin

package stage2

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// failure makes a record of err. The errno stands in it as a number for the
// helper and by name for a person.
func failure(step, msg string, err error) *spec.Failure {
	f := &spec.Failure{Step: step, Msg: msg}
	if err != nil {
		f.Errno = uint64(errnoOf(err))
		f.Msg += ": " + describe(err)
	}
	return f
}

// refusal is a failure whose errno is said by number only, because msg tells it.
func refusal(step, msg string, errno unix.Errno) *spec.Failure {
	return &spec.Failure{Step: step, Errno: uint64(errno), Msg: msg + " (" + unix.ErrnoName(errno) + ")"}
}

func errnoOf(err error) unix.Errno {
	for err != nil {
		if errno, ok := err.(unix.Errno); ok {
			return errno
		}
		wrapped, ok := err.(interface{ Unwrap() error })
		if !ok {
			return 0
		}
		err = wrapped.Unwrap()
	}
	return 0
}

func describe(err error) string {
	if name := unix.ErrnoName(errnoOf(err)); name != "" {
		return err.Error() + " (" + name + ")"
	}
	return err.Error()
}
