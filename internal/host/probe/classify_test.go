package probe

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sandboxd/internal/host"
)

const (
	saysENOSPC   = "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)"
	saysEPERM    = "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces."
	saysUIDMap   = "bwrap: setting up uid map: Permission denied"
	saysLoopback = "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted"
	saysProc     = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"
	saysEINVAL   = "bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.  bwrap must be installed setuid on such systems."
)

func TestClassify(t *testing.T) {
	ample := map[string]string{"user": "96364", "pid": "96364"}
	for _, c := range []struct {
		name   string
		a      Attempt
		k      Kernel
		state  host.State
		cause  host.Cause
		reason string
	}{
		{"works", Attempt{}, Kernel{}, host.Works, "", ""},
		{"works, with a warning", Attempt{Stderr: saysENOSPC}, Kernel{}, host.Works, "", ""},
		{"too slow", Attempt{TimedOut: true, Exit: 137}, Kernel{UnprivilegedClone: "0"}, host.Unsure, "", "in time"},
		{"fork: EAGAIN", Attempt{StartErr: "fork/exec: resource temporarily unavailable"}, Kernel{UnprivilegedClone: "0"}, host.Unsure, "", "temporarily"},
		{"namespaces used up", Attempt{Exit: 1, Stderr: saysENOSPC}, Kernel{MaxNamespaces: ample}, host.Unsure, "", "ENOSPC"},
		{"namespaces used up, old words", Attempt{Exit: 1, Stderr: "bwrap: Creating new namespace failed: No space left on device"}, Kernel{MaxNamespaces: ample}, host.Unsure, "", "No space"},
		{"namespaces forbidden", Attempt{Exit: 1, Stderr: saysENOSPC}, Kernel{MaxNamespaces: map[string]string{"user": "0"}}, host.Absent, host.NamespaceQuota, "user.max_user_namespaces=0"},
		{"network namespaces forbidden", Attempt{Exit: 1, Stderr: saysENOSPC}, Kernel{MaxNamespaces: map[string]string{"user": "9", "net": "0"}}, host.Absent, host.NamespaceQuota, "user.max_net_namespaces=0"},
		{"no space for something else", Attempt{Exit: 1, Stderr: "bwrap: Can't write data to file: No space left on device"}, Kernel{MaxNamespaces: map[string]string{"user": "0"}}, host.Unsure, "", "No space"},
		{"no memory", Attempt{Exit: 1, Stderr: "bwrap: Creating new namespace failed: Cannot allocate memory"}, Kernel{UnprivilegedClone: "0"}, host.Unsure, "", "memory"},
		{"too many processes", Attempt{Exit: 1, Stderr: "bwrap: Creating new namespace failed: Resource temporarily unavailable"}, Kernel{UnprivilegedClone: "0"}, host.Unsure, "", "temporarily"},
		{"Debian's switch", Attempt{Exit: 1, Stderr: saysEPERM}, Kernel{UnprivilegedClone: "0"}, host.Absent, host.ClosedUserns, "kernel.unprivileged_userns_clone=0"},
		{"Debian's switch is no reason for root", Attempt{Exit: 1, Stderr: saysEPERM}, Kernel{UnprivilegedClone: "0", Root: true}, host.Unsure, "", "exit code 1"},
		{"EPERM without a setting", Attempt{Exit: 1, Stderr: saysEPERM}, Kernel{UnprivilegedClone: "1", MaxNamespaces: ample}, host.Unsure, "", "No permissions"},
		{"a container's filter", Attempt{Exit: 1, Stderr: saysEPERM}, Kernel{Filtered: true}, host.Absent, host.SeccompFilter, "seccomp filter"},
		{"Ubuntu, uid map", Attempt{Exit: 1, Stderr: saysUIDMap}, Kernel{AppArmorUserns: "1", AppArmor: true}, host.Absent, host.AppArmorUserns, "kernel.apparmor_restrict_unprivileged_userns=1"},
		{"Ubuntu, loopback", Attempt{Exit: 1, Stderr: saysLoopback}, Kernel{AppArmorUserns: "1", AppArmor: true}, host.Absent, host.AppArmorUserns, "kernel.apparmor_restrict_unprivileged_userns=1"},
		{"an AppArmor profile", Attempt{Exit: 1, Stderr: saysUIDMap}, Kernel{AppArmorUserns: "0", AppArmor: true}, host.Absent, host.AppArmor, "AppArmor profile"},
		{"uid map without AppArmor", Attempt{Exit: 1, Stderr: saysUIDMap}, Kernel{}, host.Unsure, "", "uid map"},
		{"proc covered", Attempt{Exit: 1, Stderr: saysProc}, Kernel{ProcCovered: true}, host.Absent, host.ProcCovered, "mount too revealing"},
		{"hidepid", Attempt{Exit: 1, Stderr: saysProc}, Kernel{ProcOptions: "hidepid=2"}, host.Absent, host.ProcOptions, "hidepid=2"},
		{"proc without a reason", Attempt{Exit: 1, Stderr: saysProc}, Kernel{}, host.Unsure, "", "mount proc"},
		{"proc read-only", Attempt{Exit: 1, Stderr: "bwrap: setting up uid map: Read-only file system"}, Kernel{ProcOptions: "ro"}, host.Absent, host.ProcOptions, "mounted with ro"},
		{"proc writable after all", Attempt{Exit: 1, Stderr: "bwrap: setting up uid map: Read-only file system"}, Kernel{}, host.Unsure, "", "Read-only"},
		{"no user namespaces built in", Attempt{Exit: 1, Stderr: saysEINVAL}, Kernel{NoUserNamespaces: true}, host.Absent, host.NoUserns, "CONFIG_USER_NS"},
		{"EINVAL although there are", Attempt{Exit: 1, Stderr: saysEINVAL}, Kernel{}, host.Unsure, "", "exit code 1"},
		{"setuid root", Attempt{Exit: 1, Stderr: "bwrap: The --size option is not permitted in setuid mode"}, Kernel{}, host.Unsure, host.SetuidBwrap, "setuid root"},
		{"killed", Attempt{Exit: 137}, Kernel{UnprivilegedClone: "0", MaxNamespaces: map[string]string{"user": "0"}}, host.Unsure, "", "signal 9"},
		{"silent", Attempt{Exit: 1}, Kernel{UnprivilegedClone: "0"}, host.Unsure, "", "exit code 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, cause, reason := Classify(c.a, c.k)
			if state != c.state || cause != c.cause || !strings.Contains(reason, c.reason) {
				t.Errorf("got %d %q %q, want %d %q %q", state, cause, reason, c.state, c.cause, c.reason)
			}
			if (state == host.Works) != (reason == "") {
				t.Errorf("state %d with reason %q", state, reason)
			}
		})
	}
}

func TestReasonHasNoControlCharacters(t *testing.T) {
	_, _, reason := Classify(Attempt{Exit: 1, Stderr: "\x1b[31mred\x07\nsecond line"}, Kernel{})
	if strings.ContainsAny(reason, "\x1b\x07\n") || !strings.Contains(reason, "red") {
		t.Errorf("%q", reason)
	}
}

func TestProcState(t *testing.T) {
	const plain = "21 26 0:20 / /proc rw,nosuid,relatime - proc proc rw\n"
	for _, c := range []struct {
		text    string
		covered bool
		options string
	}{
		{plain, false, ""},
		{plain + "30 21 0:21 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n", false, ""},
		{plain + "30 21 0:21 / /proc/kcore rw - tmpfs tmpfs rw\n", true, ""},
		{"21 26 0:20 / /proc rw,relatime shared:2 - proc proc rw,hidepid=invisible,gid=5\n", false, "hidepid=invisible"},
		{"21 26 0:20 / /proc rw,relatime - proc proc rw,hidepid=0\n", false, ""},
		{"21 26 0:20 / /proc ro,relatime - proc proc rw,subset=pid\n", false, "ro,subset=pid"},
		{"", false, ""},
	} {
		covered, options := procState(c.text)
		if covered != c.covered || options != c.options {
			t.Errorf("%q: %v %q", c.text, covered, options)
		}
	}
}

func TestParseHelp(t *testing.T) {
	got := parseHelp("usage: bwrap [OPTIONS...] [--] COMMAND [ARGS...]\n\n    --help                       Print this help\n    --args FD   Parse --fake args\n--not-indented\n    --Bad_Name\n    -- x\n    text --later\n")
	if want := map[string]bool{"help": true, "args": true}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if v := parseVersion("bubblewrap 0.8.0\n"); v != "0.8.0" {
		t.Errorf("version %q", v)
	}
	if v := parseVersion("something else"); v != "" {
		t.Errorf("version %q", v)
	}
}

func TestTrialArgs(t *testing.T) {
	all := map[string]bool{"disable-userns": true, "unshare-cgroup": true, "info-fd": true, "size": true, "perms": true}
	with := strings.Join(trialArgs(all, false, "4", "/x"), " ")
	for _, want := range []string{"--disable-userns", "--unshare-cgroup", "--info-fd 4", "--size ", "--remount-ro / -- /x --version"} {
		if !strings.Contains(with, want) {
			t.Errorf("no %q in %s", want, with)
		}
	}
	without := strings.Join(trialArgs(nil, false, "4", "/x"), " ")
	for _, unwanted := range []string{"--disable-userns", "--unshare-cgroup", "--info-fd", "--size"} {
		if strings.Contains(without, unwanted) {
			t.Errorf("%q for a bubblewrap that lacks it", unwanted)
		}
	}
	if nested := strings.Join(trialArgs(all, true, "4", "/x"), " "); strings.Contains(nested, "--disable-userns") || !strings.Contains(nested, "--unshare-user") {
		t.Errorf("nested: %s", nested)
	}
}

func TestFindBwrap(t *testing.T) {
	dir := t.TempDir()
	good, plain := filepath.Join(dir, "bwrap"), filepath.Join(dir, "plain")
	if err := os.WriteFile(good, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if got := find([]string{filepath.Join(dir, "none"), plain, good}); got != good {
		t.Errorf("found %q", got)
	}
	if got, err := FindBwrap(good); err != nil || got != good {
		t.Errorf("explicit: %q %v", got, err)
	}
	for _, bad := range []string{filepath.Join(dir, "none"), plain, dir, "bwrap"} {
		if _, err := FindBwrap(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if got, err := FindBwrap(""); err != nil || strings.HasPrefix(got, dir) {
		t.Errorf("PATH was searched: %q %v", got, err)
	}
}

func TestForbidden(t *testing.T) {
	for cause, k := range map[host.Cause]Kernel{
		"":                  {MaxNamespaces: map[string]string{"user": "9"}, UnprivilegedClone: "1", AppArmorUserns: "1", Filtered: true},
		host.NamespaceQuota: {MaxNamespaces: map[string]string{"net": "0"}},
		host.NoUserns:       {NoUserNamespaces: true},
		host.ClosedUserns:   {UnprivilegedClone: "0"},
	} {
		if got, reason := Forbidden(k); got != cause || (reason == "") != (cause == "") {
			t.Errorf("%+v: %q, %q", k, got, reason)
		}
	}
	if got, _ := Forbidden(Kernel{UnprivilegedClone: "0", Root: true}); got != "" {
		t.Errorf("Debian's switch is none for root: %q", got)
	}
}
