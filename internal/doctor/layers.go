package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

// landlock judges the second layer around the view.
func landlock(f Facts) Finding {
	abi := f.Host.LandlockABI
	why := f.Skips["landlock"] // stage 2 knows of a filter that can hide it
	if abi == 0 && why == "" {
		why = f.Host.LandlockReason
	}
	if abi == 0 || why != "" {
		return Finding{"landlock", Missing, why, landlockRemedy(f)}
	}
	var lacks []string
	for _, l := range []struct {
		abi  int
		what string
	}{
		{4, "TCP ports"}, {6, "signals and abstract sockets"}, {9, "sockets that have a path"},
	} {
		if abi < l.abi {
			lacks = append(lacks, fmt.Sprintf("%s (ABI %d)", l.what, l.abi))
		}
	}
	out := Finding{Layer: "landlock", State: OK, Text: fmt.Sprintf("ABI %d", abi)}
	if len(lacks) == 0 {
		return out
	}
	out.Text += ", which does not know " + strings.Join(lacks, ", ")
	if abi < 6 { // with a jail, the namespaces and the seccomp filter hold what is above
		out.State, out.Remedy = Partial, "A newer kernel knows more: ABI 6 came with Linux 6.12."
	}
	return out
}

// firstLandlock is the kernel that brought it.
var firstLandlock = [2]int{5, 13}

func landlockRemedy(f Facts) string {
	major, minor, ok := release(f.Release)
	switch {
	case ok && (major < firstLandlock[0] || major == firstLandlock[0] && minor < firstLandlock[1]):
		return fmt.Sprintf("Linux %s is too old: Landlock came with %d.%d, and 6.12 knows all that a jail uses. Upgrade the kernel.", f.Release, firstLandlock[0], firstLandlock[1])
	case listed(f.LSM) && strings.Contains(f.Host.LandlockReason, "ENOSYS"): // of a kernel that has it, this is no answer
		return seccompFilter + outside(f)
	case f.LSM != "" && !listed(f.LSM):
		return fmt.Sprintf(lsmList, f.LSM, f.LSM)
	case strings.Contains(f.Host.LandlockReason, "ENOSYS"):
		return "Boot a kernel with CONFIG_SECURITY_LANDLOCK, and landlock in its lsm= list; a distribution's newer standard kernel has it."
	case strings.Contains(f.Host.LandlockReason, "EOPNOTSUPP"):
		return "Boot with landlock in the kernel's lsm= list, in front of what is there now."
	}
	return seccompFilter + outside(f)
}

// listed says whether Landlock is among the security modules that are on.
func listed(lsm string) bool { return strings.Contains(","+lsm+",", ",landlock,") }

// release reads the first two numbers of a kernel's release.
func release(s string) (major, minor int, ok bool) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	tail := strings.TrimLeft(parts[1], "0123456789") // "6.12-rc1"
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(strings.TrimSuffix(parts[1], tail))
	return major, minor, err1 == nil && err2 == nil
}

// seccomp judges the system call filter.
func seccomp(f Facts) Finding {
	why := f.Skips["seccomp-hardening"]
	switch {
	case f.Host.Seccomp && why != "":
		return Finding{"seccomp", Missing, why, seccompFilter + outside(f)}
	case why == "":
		why = "the kernel takes no system call filters"
	}
	if f.Host.Seccomp {
		return Finding{Layer: "seccomp", State: OK, Text: "system call filters can be installed"}
	}
	return Finding{"seccomp", Missing, why, "Boot a kernel with CONFIG_SECCOMP_FILTER; every distribution's standard kernel has it. Where this process runs under a filter already, as in a container, that one has to allow seccomp(2)."}
}

// cgroup judges whether there can be ceilings on memory and tasks.
func cgroup(f Facts) Finding {
	if f.CgroupBase != "" {
		return Finding{Layer: "cgroup-v2", State: OK, Text: "ceilings on memory and tasks can be held in " + f.CgroupBase}
	}
	out := Finding{Layer: "cgroup-v2", State: Missing, Text: "no ceilings on memory and tasks (--mem, --pids): " + f.NoCgroup}
	switch {
	case strings.Contains(f.NoCgroup, "cgroup v1"), strings.Contains(f.NoCgroup, "no cgroup v2 hierarchy"):
		out.Remedy = unified
	case f.Systemd && f.Container == "":
		out.Remedy = unit
	default:
		out.Remedy = noSystemd
	}
	return out
}

// caller says what it means to be who one is.
func caller(f Facts) Finding {
	if f.Host.UID != 0 {
		return Finding{Layer: "user", State: OK, Text: fmt.Sprintf("commands run as uid %d, like this one", f.Host.UID)}
	}
	return Finding{"user", Partial, "commands run as uid 0 without capabilities: they can read what root owns, but for secrets that are masked by name",
		"Start the helper as an ordinary user where you can; nothing of a jail needs root."}
}
