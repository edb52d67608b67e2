package doctor

import (
	"fmt"
	"strings"

	"sandboxd/internal/host"
)

// bubblewrap judges the layer that everything else stands on.
func bubblewrap(f Facts) Finding {
	b := f.Host.Bwrap
	switch b.State {
	case host.Works:
		if f.Command != "" {
			return Finding{"bwrap", Missing, strings.TrimSpace(b.Path+" "+b.Version) + " passes its trial, but no command can be run in its jail: " + f.Command, noCommand}
		}
		return worksPartly(f)
	case host.Absent:
		return Finding{"bwrap", Missing, b.Reason, remedy(f)}
	}
	out := Finding{"bwrap", Unsure, b.Reason, tryAgain}
	if f.Nested && strings.Contains(b.Reason, "ENOSPC") { // waiting gives it no namespaces
		out.Remedy = quota(f)
	}
	if b.Cause == host.SetuidBwrap {
		out.State, out.Remedy = Missing, remedy(f)
	}
	return out
}

const noCommand = "See whether it is bubblewrap, as the distribution's package has it, and what this process was started under: a system call filter or a security module can deny what only a whole jail needs. `sandboxd self-test` says the same, and on a machine that is only busy another try helps."

const tryAgain = "Try again when the machine is less busy. If it stays like this, see whether it is bubblewrap, as the distribution's package has it, and look at what the kernel says (dmesg, journalctl -k)."

// options are what an older bubblewrap may not know, and what is lost then.
var options = []struct{ name, since, lost string }{
	{"unshare-cgroup", "0.5.0", "the command sees the host's cgroups"},
	{"die-with-parent", "0.5.0", "the jail can outlive its helper"},
	{"cap-drop", "0.5.0", "the command keeps capabilities in its own user namespace"},
	{"perms", "0.5.0", "masks and the scratch have other modes than they should"},
	{"size", "0.7.0", "the private scratch is bounded by nothing but memory"},
	{"disable-userns", "0.8.0", "the command can make user namespaces of its own"},
	{"bind-fd", "0.10.0", "mounts are found by name once more, so a directory that is swapped at that moment is noticed only afterwards"},
}

func worksPartly(f Facts) Finding {
	b := f.Host.Bwrap
	out := Finding{"bwrap", OK, strings.TrimSpace(b.Path+" "+b.Version) + " works", ""}
	newest := ""
	var lost []string
	for _, o := range options {
		if !b.Flags[o.name] {
			lost, newest = append(lost, "no --"+o.name+": "+o.lost), o.since
		}
	}
	if newest != "" {
		out.State, out.Text = Partial, out.Text+"; "+strings.Join(lost, "; ")
		out.Remedy = fmt.Sprintf("Install bubblewrap %s or later: from a newer release of this distribution or its backports, or built from source and named with --bwrap.", newest)
	}
	return out
}

// remedy is what to do about a bubblewrap that is not there or cannot work.
func remedy(f Facts) string {
	switch f.Host.Bwrap.Cause {
	case host.NotInstalled:
		return install(f.Distro)
	case host.NamespaceQuota:
		return quota(f)
	case host.NoUserns:
		return "Boot a kernel with CONFIG_USER_NS; every distribution's standard kernel has it."
	case host.ClosedUserns:
		return closedUserns
	case host.AppArmorUserns:
		return fmt.Sprintf(appArmorProfile, f.Host.Bwrap.Path)
	case host.AppArmor:
		return fmt.Sprintf(appArmorRules, named(f.Profile))
	case host.SeccompFilter:
		return seccompFilter + outside(f)
	case host.ProcCovered:
		return procCovered + outside(f)
	case host.ProcOptions:
		return procOptions + outside(f)
	case host.SetuidBwrap:
		return "Install a bubblewrap without the setuid bit, 0.8.0 or later, and name it with --bwrap if it is not at /usr/bin/bwrap."
	}
	return tryAgain
}

func named(profile string) string {
	if profile == "" {
		return "that this program runs under"
	}
	return fmt.Sprintf("%q, that this program runs under", profile)
}

// install is the command of the distribution's package manager.
func install(d Distro) string {
	for _, id := range append([]string{d.ID}, d.Like...) {
		if cmd := installers()[id]; cmd != "" {
			return "Install it:\n\n    " + cmd
		}
	}
	return "Install the package bubblewrap with this system's package manager."
}

func installers() map[string]string {
	return map[string]string{
		"debian": "apt-get install bubblewrap",
		"ubuntu": "apt-get install bubblewrap",
		"fedora": "dnf install bubblewrap",
		"rhel":   "dnf install bubblewrap",
		"centos": "dnf install bubblewrap",
		"arch":   "pacman -S bubblewrap",
		"alpine": "apk add bubblewrap",
		"suse":   "zypper install bubblewrap",
		"gentoo": "emerge sys-apps/bubblewrap",
		"void":   "xbps-install bubblewrap",
		"nixos":  "add pkgs.bubblewrap to environment.systemPackages",
	}
}

// quota tells the quota of the host from that of a namespace around this process.
func quota(f Facts) string {
	if f.Nested || f.Container != "" {
		return "This process lives in a user namespace that somebody else made, " + around(f) + ", and that has no namespaces to give. " +
			"Start sandboxd outside of it, or have it made with a quota of its own."
	}
	return `An administrator has set this quota to 0 for the whole host, which is a decision and not a defect. This finds where:

    grep -rs 'user.max_.*_namespaces' /etc/sysctl.conf /etc/sysctl.d /run/sysctl.d /usr/lib/sysctl.d

Ask whether hosts that run sandboxd may have a quota, or run it in a virtual machine of its own.`
}

func around(f Facts) string {
	if f.Container != "" && !f.Nested {
		return "a " + f.Container + " container's"
	}
	return "a container's, a wrapper's or a jail's"
}

func outside(f Facts) string {
	if f.Container == "" {
		return ""
	}
	return "\n\nThis is a " + f.Container + " container: starting sandboxd on its host, or in a virtual machine, needs none of that."
}
