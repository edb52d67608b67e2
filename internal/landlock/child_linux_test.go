package landlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// The test binary runs itself as the child that restricts itself, and that one runs
// itself again (execve, as stage 2 does) to try the operations.
const (
	roleVar = "LANDLOCK_TEST_ROLE" // "enforce", "free", "ops", "abi"
	specVar = "LANDLOCK_TEST_SPEC" // JSON of spec.Landlock
	abiVar  = "LANDLOCK_TEST_ABI"  // ABI to build for, or the errno to answer with
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(runTests(m))
	}
	if err := child(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// selfPath is a copy of the test binary that every user can reach: a rule needs its
// path, and go test builds below a private directory.
var selfPath string

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "landlock-self-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	image, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	selfPath = filepath.Join(dir, "test")
	if err == nil {
		err = os.WriteFile(selfPath, image, 0o755)
	}
	if err != nil {
		panic(err)
	}
	return m.Run()
}

func child(role string) error {
	runtime.LockOSThread()
	number, _ := strconv.Atoi(os.Getenv(abiVar))
	switch role {
	case "ops":
		return runOps(os.Args[1:])
	case "abi":
		return answerWith(syscall.Errno(number))
	case "shell":
		if os.Getenv(specVar) != "" {
			if err := restrict(0); err != nil {
				return err
			}
		}
		return unix.Exec("/bin/bash", append([]string{"bash"}, os.Args[1:]...), []string{"PATH=/usr/bin:/bin"})
	case "enforce":
		if err := restrict(number); err != nil {
			return err
		}
	}
	// After execve: what was restricted is the thread that calls it.
	return unix.Exec("/proc/self/exe", os.Args, []string{roleVar + "=ops"})
}

func restrict(abi int) error {
	var s spec.Landlock
	if err := json.Unmarshal([]byte(os.Getenv(specVar)), &s); err != nil {
		return err
	}
	if abi == 0 {
		var err error
		if abi, err = ABI(); err != nil {
			return err
		}
	}
	rs, _, err := build(s, min(abi, MaxABI))
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return rs.Enforce()
}

// answerWith makes landlock_create_ruleset fail, as on kernels that this one is not.
func answerWith(errno syscall.Errno) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_LANDLOCK_CREATE_RULESET},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return err
	}
	rs, skips, err := Build(spec.Landlock{Enabled: true})
	if rs != nil || err != nil || len(skips) != 1 || rs.Enforce() == nil {
		return fmt.Errorf("ruleset %v, %d skips, %w", rs, len(skips), err)
	}
	fmt.Println(skips[0].Tag + ": " + skips[0].Reason)
	return nil
}

// runOps prints the errno of each operation, "VERB:ARGUMENT[:ARGUMENT]".
func runOps(ops []string) error {
	for _, op := range ops {
		parts := strings.Split(op, ":")
		f, ok := verbs[parts[0]]
		if !ok {
			return fmt.Errorf("no operation %q", op)
		}
		err := f(append(parts[1:], ""))
		var errno syscall.Errno
		if err != nil && !errors.As(err, &errno) {
			return fmt.Errorf("%s: no errno in %w", op, err)
		}
		fmt.Printf("%s %d\n", op, errno)
	}
	fmt.Println("done")
	return nil
}

func closing(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

var verbs = map[string]func(a []string) error{
	"read":  func(a []string) error { _, err := os.ReadFile(a[0]); return err },
	"list":  func(a []string) error { _, err := os.ReadDir(a[0]); return err },
	"write": func(a []string) error { return closing(unix.Open(a[0], unix.O_WRONLY|unix.O_CLOEXEC, 0)) },
	"create": func(a []string) error {
		return closing(unix.Open(a[0], unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600))
	},
	"truncate":    func(a []string) error { return unix.Truncate(a[0], 0) },
	"mkdir":       func(a []string) error { return unix.Mkdir(a[0], 0o700) },
	"symlink":     func(a []string) error { return unix.Symlink("x", a[0]) },
	"fifo":        func(a []string) error { return unix.Mknod(a[0], unix.S_IFIFO|0o600, 0) },
	"device":      func(a []string) error { return unix.Mknod(a[0], unix.S_IFCHR|0o600, 1<<8|3) },
	"remove":      func(a []string) error { return unix.Unlink(a[0]) },
	"rmdir":       func(a []string) error { return unix.Rmdir(a[0]) },
	"rename":      func(a []string) error { return unix.Rename(a[0], a[1]) },
	"link":        func(a []string) error { return unix.Link(a[0], a[1]) },
	"exec":        run,
	"mount":       func(a []string) error { return unix.Mount("none", a[0], "tmpfs", 0, "") },
	"tcp-bind":    func(a []string) error { return inet(unix.SOCK_STREAM, unix.Bind, 0) },
	"tcp-connect": func(a []string) error { return inet(unix.SOCK_STREAM, unix.Connect, number(a[0])) },
	"udp-bind":    func(a []string) error { return inet(unix.SOCK_DGRAM, unix.Bind, 0) },
	"udp-connect": func(a []string) error { return inet(unix.SOCK_DGRAM, unix.Connect, 9) },
	"abstract":    func(a []string) error { return dial("@" + a[0]) },
	"connect":     func(a []string) error { return dial(a[0]) },
	"kill":        func(a []string) error { return unix.Kill(number(a[0]), 0) },
	"ptrace":      seize,
	"getfd":       getfd,
	"mem":         func(a []string) error { return closing(unix.Open("/proc/"+a[0]+"/mem", unix.O_RDONLY, 0)) },
	"pty":         pty,
	"ioctl":       ioctl,
	"uidmap":      func([]string) error { return closing(unix.Open("/proc/self/uid_map", unix.O_WRONLY, 0)) },
	"comm":        func([]string) error { return closing(unix.Open("/proc/self/comm", unix.O_WRONLY, 0)) },
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

func run(a []string) error {
	p, err := os.StartProcess(a[0], a[:1], &os.ProcAttr{})
	if err == nil {
		_, err = p.Wait()
	}
	return err
}

func inet(kind int, call func(int, unix.Sockaddr) error, port int) error {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return call(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func dial(name string) error {
	c, err := net.Dial("unix", name)
	if err == nil {
		c.Close()
	}
	return err
}

func seize(a []string) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, 0x4206 /* PTRACE_SEIZE */, uintptr(number(a[0])), 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func getfd(a []string) error {
	pidfd, err := unix.PidfdOpen(number(a[0]), 0)
	if err != nil {
		return err
	}
	defer unix.Close(pidfd)
	return closing(unix.PidfdGetfd(pidfd, 0, 0))
}

func pty([]string) error {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	return closing(unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0))
}

// ioctl gives ENOTTY where the device may be asked.
func ioctl(a []string) error {
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.IoctlGetInt(fd, 0x1234)
	return err
}
