package doctor

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/host"
)

// allFlags are those of a bubblewrap that lacks nothing.
func allFlags() map[string]bool {
	m := map[string]bool{}
	for _, o := range options {
		m[o.name] = true
	}
	return m
}

// healthy is a host that lacks nothing.
func healthy() Facts {
	return Facts{
		Host: host.Facts{OS: "linux", UID: 1000, LandlockABI: 9, Seccomp: true,
			Bwrap: host.Bwrap{Path: "/usr/bin/bwrap", Version: "0.11.0", State: host.Works, Flags: allFlags()}},
		Release: "6.18.1", CgroupBase: "/sys/fs/cgroup/x", LSM: "capability,landlock,apparmor",
		Distro: Distro{ID: "debian", Name: "Debian GNU/Linux 12"},
	}
}

func broken(cause host.Cause, reason string) func(*Facts) {
	return func(f *Facts) {
		f.Host.Bwrap.State, f.Host.Bwrap.Cause, f.Host.Bwrap.Reason = host.Absent, cause, reason
	}
}

func both(a, b func(*Facts)) func(*Facts) { return func(f *Facts) { a(f); b(f) } }

func inside(kind string) func(*Facts) { return func(f *Facts) { f.Container = kind } }

// cases are hosts that lack one thing.
var cases = []struct {
	name   string
	change func(*Facts)
	layer  string
	state  State
	text   string   // part of what is said
	remedy []string // parts of the advice
	not    string   // no part of it
	jailed bool
}{
	{"nothing missing", func(*Facts) {}, "bwrap", OK, "/usr/bin/bwrap 0.11.0 works", nil, "", true},
	{"Debian without bubblewrap", broken(host.NotInstalled, "there is no bubblewrap"), "bwrap", Missing, "there is no", []string{"apt-get install bubblewrap"}, "", false},
	{"Rocky without bubblewrap", both(broken(host.NotInstalled, "none"), func(f *Facts) { f.Distro = Distro{ID: "rocky", Like: []string{"rhel", "fedora"}} }), "bwrap", Missing, "none", []string{"dnf install"}, "", false},
	{"something else without", both(broken(host.NotInstalled, "none"), func(f *Facts) { f.Distro = Distro{ID: "own"} }), "bwrap", Missing, "none", []string{"package manager"}, "", false},
	{"a quota of 0", broken(host.NamespaceQuota, "user.max_user_namespaces=0"), "bwrap", Missing, "max_user_namespaces=0", []string{"administrator", "grep -rs"}, "", false},
	{"a quota of 0 in a namespace", both(broken(host.NamespaceQuota, "=0"), func(f *Facts) { f.Nested = true }), "bwrap", Missing, "=0", []string{"somebody else made"}, "grep", false},
	{"a quota of 0 in a container", both(broken(host.NamespaceQuota, "=0"), inside("lxc")), "bwrap", Missing, "=0", []string{"a lxc container's", "Start sandboxd outside"}, "grep", false},
	{"a full quota in a namespace", func(f *Facts) {
		f.Host.Bwrap.State, f.Host.Bwrap.Reason, f.Nested = host.Unsure, "No space left on device (ENOSPC)", true
	}, "bwrap", Unsure, "ENOSPC", []string{"somebody else made"}, "Try again", false},
	{"a cause that nobody knows", broken("", "it ended by itself"), "bwrap", Missing, "by itself", []string{"Try again"}, "", false},
	{"no user namespaces", broken(host.NoUserns, "CONFIG_USER_NS"), "bwrap", Missing, "CONFIG", []string{"CONFIG_USER_NS"}, "", false},
	{"closed to users", broken(host.ClosedUserns, "unprivileged_userns_clone=0"), "bwrap", Missing, "clone=0", []string{"decision", "system service"}, "sysctl", false},
	{"Ubuntu's restriction", broken(host.AppArmorUserns, "apparmor_restrict"), "bwrap", Missing, "apparmor_restrict", []string{"/etc/apparmor.d/sandboxd-bwrap", "profile sandboxd-bwrap /usr/bin/bwrap", "userns,", "apparmor_parser -r"}, "sysctl", false},
	{"another profile", both(broken(host.AppArmor, "denies"), func(f *Facts) { f.Profile = "docker-default" }), "bwrap", Missing, "denies", []string{`"docker-default"`, "pivot_root,"}, "", false},
	{"a container's filter", both(broken(host.SeccompFilter, "filter"), inside("docker")), "bwrap", Missing, "filter", []string{`"unshare"`, "SCMP_ACT_ALLOW", "docker container"}, "", false},
	{"a unit's filter", broken(host.SeccompFilter, "filter"), "bwrap", Missing, "filter", []string{"RestrictNamespaces="}, "container:", false},
	{"a covered /proc", both(broken(host.ProcCovered, "too revealing"), inside("podman")), "bwrap", Missing, "revealing", []string{"has to stay", "podman container"}, "", false},
	{"hidepid", broken(host.ProcOptions, "hidepid=2"), "bwrap", Missing, "hidepid", []string{"ProtectProc="}, "remount", false},
	{"a setuid bubblewrap", func(f *Facts) {
		f.Host.Bwrap.State, f.Host.Bwrap.Cause, f.Host.Bwrap.Reason = host.Unsure, host.SetuidBwrap, "setuid root"
	}, "bwrap", Missing, "setuid", []string{"without the setuid bit"}, "", false},
	{"a loaded machine", func(f *Facts) { f.Host.Bwrap.State, f.Host.Bwrap.Reason = host.Unsure, "did not finish in time" }, "bwrap", Unsure, "in time", []string{"Try again"}, "", false},
	{"an old bubblewrap", func(f *Facts) {
		f.Host.Bwrap.Flags["disable-userns"], f.Host.Bwrap.Flags["bind-fd"] = false, false
	}, "bwrap", Partial, "no --disable-userns", []string{"0.10.0 or later"}, "", true},
	{"Linux 5.10", func(f *Facts) {
		f.Host.LandlockABI, f.Host.LandlockReason, f.Release = 0, "ENOSYS", "5.10.0-32-amd64"
	}, "landlock", Missing, "ENOSYS", []string{"5.10.0-32-amd64 is too old", "5.13"}, "", true},
	{"Landlock not in lsm=", func(f *Facts) {
		f.Host.LandlockABI, f.Host.LandlockReason, f.LSM = 0, "EOPNOTSUPP", "capability,yama,apparmor"
	}, "landlock", Missing, "EOPNOTSUPP", []string{"lsm=landlock,capability,yama,apparmor"}, "", true},
	{"Landlock off, list unknown", func(f *Facts) { f.Host.LandlockABI, f.Host.LandlockReason, f.LSM = 0, "EOPNOTSUPP", "" }, "landlock", Missing, "", []string{"lsm= list"}, "", true},
	{"Landlock not built in", func(f *Facts) { f.Host.LandlockABI, f.Host.LandlockReason, f.LSM = 0, "ENOSYS", "" }, "landlock", Missing, "", []string{"CONFIG_SECURITY_LANDLOCK"}, "", true},
	{"Landlock refused by a filter", both(func(f *Facts) { f.Host.LandlockABI, f.Host.LandlockReason = 0, "operation not permitted" }, inside("docker")), "landlock", Missing, "", []string{"landlock_create_ruleset"}, "", true},
	{"Landlock hidden by a filter", func(f *Facts) { f.Host.LandlockABI, f.Host.LandlockReason = 0, "ENOSYS" }, "landlock", Missing, "ENOSYS", []string{"landlock_create_ruleset", "SystemCallFilter="}, "CONFIG_", true},
	{"Landlock of which stage 2 knows more", func(f *Facts) {
		f.Host.LandlockABI, f.Host.LandlockReason, f.Skips = 0, "", map[string]string{"landlock": "or a filter hides it"}
	}, "landlock", Missing, "or a filter hides it", []string{"landlock_create_ruleset"}, "", true},
	{"seccomp of which stage 2 knows more", func(f *Facts) {
		f.Host.Seccomp, f.Skips = false, map[string]string{"seccomp-hardening": "or a filter hides it"}
	}, "seccomp", Missing, "or a filter hides it", []string{"allow seccomp(2)"}, "", true},
	{"Landlock that stage 2 does not get", func(f *Facts) { f.Skips = map[string]string{"landlock": "not there"} }, "landlock", Missing, "not there", []string{"landlock_create_ruleset"}, "", true},
	{"seccomp that stage 2 does not get", func(f *Facts) { f.Skips = map[string]string{"seccomp-hardening": "not there"} }, "seccomp", Missing, "not there", []string{"SystemCallFilter="}, "", true},
	{"a bubblewrap that passes its trial only", func(f *Facts) { f.Command = "the net namespace is the helper's own" }, "bwrap", Missing, "/usr/bin/bwrap 0.11.0 passes its trial, but no command can be run in its jail: the net", []string{"whether it is bubblewrap", "self-test"}, "", false},
	{"an early Landlock", func(f *Facts) { f.Host.LandlockABI = 3 }, "landlock", Partial, "TCP ports (ABI 4), signals", []string{"6.12"}, "", true},
	{"no path sockets", func(f *Facts) { f.Host.LandlockABI = 7 }, "landlock", OK, "have a path (ABI 9)", nil, "", true},
	{"no seccomp", func(f *Facts) { f.Host.Seccomp = false }, "seccomp", Missing, "no system call filters", []string{"CONFIG_SECCOMP_FILTER"}, "", true},
	{"no cgroup, systemd", func(f *Facts) { f.CgroupBase, f.NoCgroup, f.Systemd = "", "holds the helper itself", true }, "cgroup-v2", Missing, "holds the helper", []string{"Delegate=memory pids", "DelegateSubgroup=", "[Service]", "SANDBOXD_CGROUP_BASE="}, "mkdir", true},
	{"no cgroup, no systemd", func(f *Facts) { f.CgroupBase, f.NoCgroup = "", "holds the helper itself" }, "cgroup-v2", Missing, "holds", []string{"mkdir /sys/fs/cgroup/sandboxd", "--cgroup-base"}, "[Service]", true},
	{"cgroup v1", func(f *Facts) { f.CgroupBase, f.NoCgroup, f.Systemd = "", "this host has it on cgroup v1", true }, "cgroup-v2", Missing, "v1", []string{"unified_cgroup_hierarchy=1"}, "Delegate", true},
	{"root", func(f *Facts) { f.Host.UID = 0 }, "user", Partial, "uid 0 without capabilities", []string{"ordinary user"}, "", true},
	{"macOS", func(f *Facts) { f.Host.OS, f.Seatbelt = "darwin", host.Works }, "seatbelt", OK, "can be applied", nil, "", true},
	{"macOS in a sandbox", func(f *Facts) {
		f.Host.OS, f.Seatbelt, f.NoSeatbelt = "darwin", host.Absent, "already runs in a sandbox"
	}, "seatbelt", Missing, "already", []string{"no sandbox itself"}, "", false},
	{"macOS, loaded", func(f *Facts) { f.Host.OS, f.Seatbelt, f.NoSeatbelt = "darwin", host.Unsure, "in time" }, "seatbelt", Unsure, "in time", []string{"Try again"}, "", false},
	{"Windows", func(f *Facts) { f.Host.OS = "windows" }, "jail", Missing, "no jail for windows", []string{"virtual machine"}, "", false},
}

func TestJudge(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := healthy()
			c.change(&f)
			found := Judge(f)
			if Jailed(found) != c.jailed {
				t.Errorf("jailed: %v, want %v", !c.jailed, c.jailed)
			}
			i := slices.IndexFunc(found, func(one Finding) bool { return one.Layer == c.layer })
			if i < 0 {
				t.Fatalf("nothing is said of %s: %+v", c.layer, found)
			}
			got := found[i]
			if got.State != c.state || !strings.Contains(got.Text, c.text) {
				t.Errorf("got %s %q, want %s %q", got.State, got.Text, c.state, c.text)
			}
			for _, part := range c.remedy {
				if !strings.Contains(got.Remedy, part) {
					t.Errorf("no %q in the advice:\n%s", part, got.Remedy)
				}
			}
			if c.not != "" && strings.Contains(got.Remedy, c.not) {
				t.Errorf("%q is in the advice:\n%s", c.not, got.Remedy)
			}
			// Only what was changed is amiss; and what is amiss has advice.
			for _, one := range found {
				if one.Layer != c.layer && f.Host.OS == "linux" && one.State != OK {
					t.Errorf("%s is %s, too: %s", one.Layer, one.State, one.Text)
				}
				if one.State != OK && one.Remedy == "" && one.Layer != "rlimit-address-space" {
					t.Errorf("nothing is advised about %s", one.Layer)
				}
			}
		})
	}
}

// off are the ways to switch a protection off that people find in forums.
var off = regexp.MustCompile(`(?i)--privileged|(apparmor|seccomp|systempaths)[=:]unconfined|userns_clone=1|restrict_unprivileged_userns=0|max_\w*_namespaces=[1-9]|sysctl -w|setenforce|selinux=0|apparmor=0|lsm=""|aa-disable|aa-complain|hidepid=0|chmod u\+s|\bdisable\b|\b(turn|switch)(ed)? off\b|CAP_SYS_ADMIN|ProtectProc=default`)

func TestNothingIsSwitchedOff(t *testing.T) {
	for _, c := range cases {
		f := healthy()
		c.change(&f)
		for _, one := range Judge(f) {
			if found := off.FindString(one.Remedy); found != "" {
				t.Errorf("%s: the advice about %s says %q:\n%s", c.name, one.Layer, found, one.Remedy)
			}
		}
	}
	if !off.MatchString("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0") || !off.MatchString("docker run --security-opt seccomp=unconfined") {
		t.Error("the pattern finds nothing")
	}
}

// Every cause that a probe can name has advice of its own.
func TestEveryCauseHasAdvice(t *testing.T) {
	seen := map[string]host.Cause{}
	for _, cause := range []host.Cause{
		host.NotInstalled, host.NamespaceQuota, host.NoUserns, host.ClosedUserns, host.AppArmorUserns,
		host.AppArmor, host.SeccompFilter, host.ProcCovered, host.ProcOptions, host.SetuidBwrap,
	} {
		f := healthy()
		broken(cause, "x")(&f)
		advice := Judge(f)[0].Remedy
		if advice == "" || advice == tryAgain || seen[advice] != "" {
			t.Errorf("%s: %q, the same as %s", cause, advice, seen[advice])
		}
		seen[advice] = cause
	}
}

func TestRelease(t *testing.T) {
	for s, want := range map[string][2]int{"5.10.0-32-amd64": {5, 10}, "6.18": {6, 18}, "6.12-rc1": {6, 12}, "6.1+": {6, 1}} {
		if major, minor, ok := release(s); !ok || [2]int{major, minor} != want {
			t.Errorf("%s: %d.%d %v", s, major, minor, ok)
		}
	}
	for _, s := range []string{"", "6", "x.y"} {
		if _, _, ok := release(s); ok {
			t.Errorf("%q is a release", s)
		}
	}
}
