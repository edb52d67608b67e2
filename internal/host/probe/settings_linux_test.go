package probe

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

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
