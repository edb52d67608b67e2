package witness

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attack tries to get hold of a process of the same user: "PID", or "child" for one
// of its own, which every kernel allows.
func attack(r *reporter, args []string) {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		cmd := tie(exec.Command("/proc/self/exe", Prefix+"stay", r.nonce))
		if err := cmd.Start(); err != nil {
			r.answer("ptrace", "", err)
			return
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		pid = cmd.Process.Pid
	}
	// Reading first: a process that is traced stays traced until this one ends.
	r.answer("mem", "", readMemory(pid))
	r.answer("getfd", "", takeDescriptor(pid))
	runtime.LockOSThread()
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0)
	r.answer("ptrace", "", asError(errno))
}

func readMemory(pid int) error {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err == nil {
		f.Close()
	}
	return err
}

func takeDescriptor(pid int) error {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, 0, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// interfaces makes one call each of kernel interfaces that no command needs. The key
// goes to this process's own keyring and ends with it (keyrings(7)).
func interfaces(r *reporter, _ []string) {
	_, err := unix.AddKey("user", "sandboxd-selftest", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	r.answer("add_key", "", err)
	_, err = unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
	r.answer("keyctl", "", err)
	var attr [128]byte // union bpf_attr: BPF_MAP_CREATE of an array with one 4-byte value
	for i, v := range []byte{2, 4, 4, 1} {
		attr[4*i] = v
	}
	r.answer("bpf", "", closing(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr[0])), uintptr(len(attr))))
	r.answer("userfaultfd", "", closing(unix.SYS_USERFAULTFD, 1, 0, 0)) // UFFD_USER_MODE_ONLY
}

// closing makes a call that gives a descriptor and closes it.
func closing(nr, a, b, c uintptr) error {
	fd, _, errno := unix.Syscall(nr, a, b, c)
	if errno == 0 {
		unix.Close(int(fd))
	}
	return asError(errno)
}

func asError(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
