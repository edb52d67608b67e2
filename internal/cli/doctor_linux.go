package cli

import (
	"os"
	"strings"

	"sandboxd/internal/cgroup"
	"sandboxd/internal/doctor"
)

// surroundings fills in what the advice depends on.
func surroundings(f *doctor.Facts, o options, s System) {
	f.Release = readSetting("/proc/sys/kernel/osrelease")
	f.LSM = readSetting("/sys/kernel/security/lsm")
	f.Nested = nested(readSetting("/proc/self/uid_map"))
	f.Container = container()
	profile := readSetting("/proc/self/attr/apparmor/current")
	f.Profile, _, _ = strings.Cut(profile, " (")
	_, err := os.Stat("/run/systemd/system") // sd_booted(3)
	f.Systemd = err == nil
	base, reason := cgroup.Open(o.cgroupBase, getenv(s.Environ, cgroup.BaseEnv))
	if base != nil {
		f.CgroupBase = base.Path()
		base.Close()
	}
	f.NoCgroup = reason
}

// nested says whether a map of user ids is another than that of the first user
// namespace, which is the whole range onto itself (user_namespaces(7)).
func nested(uidMap string) bool {
	fields := strings.Fields(uidMap)
	return len(fields) > 0 && (len(fields) != 3 || fields[0] != "0" || fields[1] != "0" || fields[2] != "4294967295")
}

// container names the kind of container around this process by the marks that the
// engines leave, or gives "".
func container() string {
	for _, mark := range []struct{ path, kind string }{
		{"/run/.containerenv", "podman"}, {"/.dockerenv", "docker"}, {"/dev/lxd/sock", "lxd"},
	} {
		if _, err := os.Stat(mark.path); err == nil {
			return mark.kind
		}
	}
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return "kubernetes"
	}
	kind := readSetting("/run/systemd/container")
	if len(kind) > 32 {
		return ""
	}
	return kind
}
