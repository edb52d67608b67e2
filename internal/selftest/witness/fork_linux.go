package witness

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func platformRoles() []role {
	return append(unixRoles(),
		role{"fork", "COUNT: makes that many children at once", bomb},
		role{"attack", "PID|child: takes hold of a process", attack},
		role{"interfaces", ": calls kernel interfaces that no command needs", interfaces})
}

// bomb forks COUNT children that stay, counts those that it got, and ends them.
func bomb(r *reporter, args []string) {
	// A thread that the runtime wants in the middle of it could not be made, which
	// ends a Go program: none is needed while this one is locked and does nothing
	// but raw calls.
	runtime.LockOSThread()
	want := size(args[0])
	pids := make([]int, 0, want)
	var errno syscall.Errno
	for len(pids) < want {
		pid, e := rawFork()
		if e != 0 {
			errno = e
			break
		}
		pids = append(pids, int(pid))
	}
	for _, pid := range pids {
		unix.RawSyscall(unix.SYS_KILL, uintptr(pid), uintptr(unix.SIGKILL), 0)
	}
	for _, pid := range pids {
		unix.Wait4(pid, nil, 0, nil)
	}
	var err error
	if errno != 0 {
		err = fmt.Errorf("after %d children: %w", len(pids), errno)
	}
	r.answer("fork", fmt.Sprint(len(pids)), err)
}

// rawFork makes a child that waits for its death. The child shares nothing with the
// runtime any more but a copy of its memory: it may neither grow its stack nor
// allocate nor return.
//
//go:nosplit
//go:norace
func rawFork() (uintptr, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	for {
		syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}
