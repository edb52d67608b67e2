package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// ErrUnsupported says that this kernel or architecture has no seccomp filters:
// a skip, where every other error of Install must refuse the execution.
var ErrUnsupported = errors.New("seccomp filters are not supported here")

// retErrno is SECCOMP_RET_ERRNO (linux/seccomp.h).
const retErrno uint32 = 0x0005_0000

// Install puts the filters for o on every thread of this process
// (SECCOMP_FILTER_FLAG_TSYNC, seccomp(2)). The caller has set no_new_privs, without
// which an unprivileged caller gets EACCES. Filters cannot be taken back: after an
// error some may be in force, and the process must end.
func Install(o spec.Seccomp) error {
	programs := Programs(runtime.GOARCH, o)
	if programs == nil {
		return fmt.Errorf("cannot install system-call filters: no program for %s: %w", runtime.GOARCH, ErrUnsupported)
	}
	return install(programs)
}

// Supported says why filters cannot be installed on this kernel, or nil. It
// changes nothing (SECCOMP_GET_ACTION_AVAIL, Linux 4.14).
func Supported() error {
	if tableOf(runtime.GOARCH) == nil {
		return fmt.Errorf("no program for %s: %w", runtime.GOARCH, ErrUnsupported)
	}
	action := retErrno
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return fmt.Errorf("%w: %w (the kernel needs CONFIG_SECCOMP_FILTER)", ErrUnsupported, errno)
	}
	return nil
}

func install(programs [][]Instruction) error {
	for i, program := range programs {
		if err := load(program); err != nil {
			if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
				if lacking := Supported(); lacking != nil {
					err = lacking
				}
			}
			return fmt.Errorf("cannot install system-call filter %d of %d: %w", i+1, len(programs), err)
		}
	}
	return nil
}

func load(program []Instruction) error {
	if len(program) == 0 || len(program) > unix.BPF_MAXINSNS {
		return fmt.Errorf("a program of %d instructions: %w", len(program), unix.EINVAL)
	}
	prog := unix.SockFprog{
		Len: uint16(len(program)),
		// Same layout: TestInstructionLayout.
		Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0])),
	}
	tid, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	switch {
	case errno == unix.EACCES:
		return fmt.Errorf("%w (no_new_privs must be set first)", errno)
	case errno != 0:
		return errno
	case tid != 0:
		// With TSYNC a positive result is no success: no thread got the filter.
		return fmt.Errorf("thread %d has a filter of its own and cannot be synchronised", tid)
	}
	return nil
}
