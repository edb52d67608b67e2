package probe

import (
	"fmt"
	"strconv"
	"strings"

	"sandboxd/internal/host"
)

// Attempt is how one start of bubblewrap ended.
type Attempt struct {
	TimedOut bool   // it was killed at the deadline
	StartErr string // it could not be started at all
	Exit     int    // exit code; 128+n for signal n
	Stderr   string // what it said
}

// Kernel is what the kernel says of the settings that bubblewrap depends on. A
// setting that this kernel does not have is "".
type Kernel struct {
	UnprivilegedClone string            // kernel.unprivileged_userns_clone (Debian)
	AppArmorUserns    string            // kernel.apparmor_restrict_unprivileged_userns (Ubuntu)
	AppArmor          bool              // AppArmor is enabled
	MaxNamespaces     map[string]string // user.max_*_namespaces, by kind: "user", "pid", ...
	NoUserNamespaces  bool              // built without CONFIG_USER_NS
	ProcCovered       bool              // something is mounted over parts of /proc
	ProcOptions       string            // hidepid or subset of this /proc, "hidepid=2"
	Filtered          bool              // this process runs under a seccomp filter, and that denies namespaces
	Root              bool              // the caller is uid 0
}

// kinds are the namespaces that the jail makes anew and that the kernel counts.
var kinds = []string{"user", "mnt", "pid", "ipc", "uts", "cgroup", "net"}

// Classify says what an attempt proves. Absent is only what a setting of the kernel
// explains: it is the one answer after which commands may run without bubblewrap,
// so a passing shortage must never give it. The reason is "" for Works.
func Classify(a Attempt, k Kernel) (host.State, host.Cause, string) {
	said := firstLine(a.Stderr)
	switch {
	case a.TimedOut:
		return host.Unsure, "", "bubblewrap did not finish its trial in time; the machine may be loaded"
	case a.StartErr != "":
		return host.Unsure, "", "bubblewrap could not be started: " + a.StartErr
	case a.Exit == 0:
		return host.Works, "", ""
	}
	if cause, setting := explain(a.Stderr, k); setting != "" {
		return host.Absent, cause, setting + said
	}
	if strings.Contains(a.Stderr, "not permitted in setuid mode") {
		return host.Unsure, host.SetuidBwrap, "this bubblewrap is setuid root and lacks options that the jail needs; install one without the setuid bit" + said
	}
	if a.Exit > 128 {
		return host.Unsure, "", fmt.Sprintf("bubblewrap's trial was killed by signal %d", a.Exit-128) + said
	}
	return host.Unsure, "", fmt.Sprintf("bubblewrap's trial failed with exit code %d", a.Exit) + said
}

// explain finds the setting of the kernel that accounts for what bubblewrap said,
// or "". The words are those of bubblewrap 0.4 to 0.11.
func explain(stderr string, k Kernel) (host.Cause, string) {
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(stderr, part) {
				return true
			}
		}
		return false
	}
	denied := has("Operation not permitted", "Permission denied", "No permissions to")
	switch {
	case has("ENOSPC", "No space left on device") && has("namespace"):
		return exhausted(k)
	case has("does not support user namespaces", "Invalid argument") && k.NoUserNamespaces:
		return host.NoUserns, noUserns
	case has("uid map", "gid map", "setgroups") && has("Read-only file system") && k.ProcOptions != "":
		return host.ProcOptions, "a user namespace cannot be set up because /proc is mounted with " + k.ProcOptions
	case has("mount proc") && denied:
		return revealing(k)
	case has("namespace", "uid map", "gid map", "loopback", "setgroups") && denied:
		return refused(k, has("namespace"))
	}
	return "", ""
}

// Forbidden finds a setting that leaves bubblewrap no chance, without trying it out:
// "" says nothing about whether it works.
func Forbidden(k Kernel) (host.Cause, string) {
	switch cause, reason := exhausted(k); {
	case reason != "":
		return cause, reason
	case k.NoUserNamespaces:
		return host.NoUserns, noUserns
	case isZero(k.UnprivilegedClone) && !k.Root:
		return host.ClosedUserns, closedUserns
	}
	return "", ""
}

const (
	noUserns     = "this kernel is built without user namespaces (CONFIG_USER_NS)"
	closedUserns = "kernel.unprivileged_userns_clone=0 keeps user namespaces from ordinary users"
)

// exhausted tells a ceiling of zero, which is a setting, from one that is used up,
// which passes: the kernel says ENOSPC to both.
func exhausted(k Kernel) (host.Cause, string) {
	for _, kind := range kinds {
		if isZero(k.MaxNamespaces[kind]) {
			return host.NamespaceQuota, "user.max_" + kind + "_namespaces=0 forbids the namespaces that the jail is made of"
		}
	}
	return "", ""
}

// revealing is the kernel's rule that a new /proc must not show what the one that
// is mounted hides ("mount too revealing" in its log).
func revealing(k Kernel) (host.Cause, string) {
	switch {
	case k.ProcCovered:
		return host.ProcCovered, "the kernel refuses a fresh /proc because parts of this one are covered, as container runtimes do it (mount too revealing)"
	case k.ProcOptions != "":
		return host.ProcOptions, "the kernel refuses a fresh /proc because this one is mounted with " + k.ProcOptions + " (mount too revealing)"
	}
	return "", ""
}

// refused finds who denied a namespace or its set-up.
func refused(k Kernel, creating bool) (host.Cause, string) {
	switch {
	case isZero(k.UnprivilegedClone) && !k.Root:
		return host.ClosedUserns, closedUserns
	case k.AppArmorUserns != "" && !isZero(k.AppArmorUserns):
		return host.AppArmorUserns, "kernel.apparmor_restrict_unprivileged_userns=" + k.AppArmorUserns + " leaves a program without an AppArmor profile no rights in a user namespace; install the profile that your distribution has for bwrap"
	case k.AppArmor && !creating:
		return host.AppArmor, "an AppArmor profile denies setting up a user namespace (apparmor); let the profile of this program allow userns"
	case k.Filtered && creating:
		return host.SeccompFilter, "the seccomp filter that this process was started under, usually a container's, denies new namespaces"
	}
	return "", ""
}

func isZero(setting string) bool {
	n, err := strconv.ParseUint(setting, 10, 64)
	return err == nil && n == 0
}

// firstLine gives the start of what was said as the tail of a reason, with control
// characters escaped.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if line == "" {
		return ""
	}
	const most = 200
	if len(line) > most {
		line = line[:most]
	}
	q := strconv.QuoteToASCII(line)
	return " (it said: " + q + ")"
}
