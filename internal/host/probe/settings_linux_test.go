package probe

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/testenv"
)

// settings make this process's own namespaces refuse bubblewrap in a way that is
// named, or leave it alone.
var settings = map[string]struct {
	make   func() error
	state  host.State
	reason string
}{
	"unchanged": {func() error { return nil }, host.Works, ""},
	"no user namespaces": {func() error {
		return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	}, host.Absent, "user.max_user_namespaces=0"},
	"no network namespaces": {func() error {
		return os.WriteFile("/proc/sys/user/max_net_namespaces", []byte("0"), 0)
	}, host.Absent, "user.max_net_namespaces=0"},
	// The jail needs two, one in the other: a ceiling that is used up is no setting.
	"user namespaces used up": {func() error {
		return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("1"), 0)
	}, host.Unsure, "exit code 1"},
	"proc covered": {func() error {
		return unix.Mount("none", "/proc/tty", "tmpfs", 0, "")
	}, host.Absent, "mount too revealing"},
	"proc read-only": {func() error {
		return unix.Mount("", "/proc", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}, host.Absent, "mounted with ro"},
	"a filter": {func() error { return filter(unix.CLONE_NEWUSER) }, host.Absent, "seccomp filter"},
	// In a chroot the kernel refuses user namespaces (user_namespaces(7)): whatever filter is
	// there too, as a container's always is, has nothing to do with it.
	"a chroot, and a filter that denies nothing": {func() error {
		return errors.Join(unix.Mount("/", "/tmp", "", unix.MS_BIND|unix.MS_REC, ""), unix.Chroot("/tmp"), unix.Chdir("/"), filter(0))
	}, host.Unsure, "exit code 1"},
}

// filter puts one on every thread that denies clone(2) with any of some flags.
func filter(flags uint32) error {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // seccomp_data.args[0]
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: flags, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

const settingVar = "PROBE_TEST_SETTING"

// TestKernelSettings meets the refusals for real, in a user and mount namespace of
// a child process.
func TestKernelSettings(t *testing.T) {
	if name := os.Getenv(settingVar); name != "" {
		inside(t, name)
		return
	}
	if path, err := FindBwrap(""); err != nil || path == "" {
		testenv.Skip(t, "bubblewrap", "not installed")
	}
	for name := range settings {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestKernelSettings$", "-test.v")
			cmd.Env = append(os.Environ(), settingVar+"="+name)
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
			}
			out, err := cmd.CombinedOutput()
			switch {
			case strings.Contains(string(out), "--- SKIP"):
				testenv.Skip(t, "userns", string(out))
			case err != nil && cmd.ProcessState == nil:
				testenv.Skip(t, "userns", err.Error())
			case err != nil || !strings.Contains(string(out), "PASS"):
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func inside(t *testing.T, name string) {
	s := settings[name]
	if err := s.make(); err != nil {
		testenv.Skip(t, "userns", "cannot set this up: "+err.Error())
	}
	f, err := Facts(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Bwrap.State != s.state || !strings.Contains(f.Bwrap.Reason, s.reason) {
		t.Errorf("state %d, reason %q", f.Bwrap.State, f.Bwrap.Reason)
	}
}
