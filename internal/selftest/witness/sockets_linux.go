package witness

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sockets opens one socket for each argument and closes it. "int80" and "x32" open
// an AF_INET one by the other system call entries of x86, "io_uring" makes a ring,
// which can open sockets without the socket call.
func sockets(r *reporter, ways []string) {
	for _, way := range ways {
		err := socket(way)
		r.answer(way, "", err)
	}
}

func socket(way string) error {
	families := map[string][2]int{
		"unix": {unix.AF_UNIX, unix.SOCK_STREAM}, "inet": {unix.AF_INET, unix.SOCK_STREAM},
		"inet6": {unix.AF_INET6, unix.SOCK_STREAM}, "netlink": {unix.AF_NETLINK, unix.SOCK_RAW},
		"vsock": {unix.AF_VSOCK, unix.SOCK_STREAM},
	}
	switch way {
	case "int80":
		return inChild("int80")
	case "int80-now":
		return int80()
	case "x32":
		return x32()
	case "io_uring":
		return ring()
	}
	f := families[way]
	fd, err := unix.Socket(f[0], f[1]|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// inChild makes a call that kills the process on a kernel without 32-bit calls.
func inChild(way string) error {
	if runtime.GOARCH != "amd64" {
		return errLacks
	}
	out, err := tie(exec.Command("/proc/self/exe", Prefix+"socket", "-", "-", way+"-now")).Output()
	word := ""
	for _, line := range strings.Split(string(out), "\n") {
		if rest, ok := strings.CutPrefix(line, way+"-now "); ok {
			word = rest
		}
	}
	switch {
	case strings.HasPrefix(word, OK):
		return nil
	case strings.HasPrefix(word, Denied):
		return fmt.Errorf("%s", strings.TrimPrefix(word, Denied+" "))
	case err != nil:
		return fmt.Errorf("%w: the call ended the process (%v)", errLacks, err)
	}
	return errLacks
}

// x32Bit marks a call of the x32 ABI (asm/unistd.h, __X32_SYSCALL_BIT).
const x32Bit = 0x40000000

func x32() error {
	if runtime.GOARCH != "amd64" {
		return errLacks
	}
	fd, _, errno := unix.RawSyscall(x32Bit|unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)
	if errno != 0 {
		return errno
	}
	unix.Close(int(fd))
	return nil
}

func ring() error {
	var params [120]byte // struct io_uring_params
	fd, _, errno := unix.RawSyscall(unix.SYS_IO_URING_SETUP, 2, uintptr(unsafe.Pointer(&params[0])), 0)
	if errno != 0 {
		return errno
	}
	unix.Close(int(fd))
	return nil
}

// endedAs waits for the end of a child and gives the effective user that it had.
func endedAs(pid int) (int, error) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != nil && err != unix.EINTR {
			return 0, err
		}
		if err == nil {
			break
		}
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(b), "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "Uid:" {
			return size(f[2]), nil
		}
	}
	return 0, errNone
}
