package witness

import "golang.org/x/sys/unix"

func rawInt80(nr, a, b, c uint32) int32

// i386Socket is socket(2) of arch/x86/entry/syscalls/syscall_32.tbl.
const i386Socket = 359

func int80() error {
	fd := rawInt80(i386Socket, unix.AF_INET, unix.SOCK_STREAM, 0)
	if fd < 0 {
		return unix.Errno(-fd)
	}
	unix.Close(int(fd))
	return nil
}
