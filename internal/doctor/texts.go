package doctor

// Advice that is longer than a line.
const (
	closedUserns = `An administrator keeps user namespaces from ordinary users here, which is a decision and not a defect. A helper that a system service of root's starts is not concerned: its commands run as uid 0 without capabilities. Or run sandboxd in a virtual machine of its own.`

	appArmorProfile = `Give bubblewrap the right that it needs, and nothing else: every other program stays restricted. As /etc/apparmor.d/sandboxd-bwrap:

    abi <abi/4.0>,
    include <tunables/global>

    profile sandboxd-bwrap %s flags=(unconfined) {
      userns,
    }

Then, as root:

    apparmor_parser -r /etc/apparmor.d/sandboxd-bwrap`

	appArmorRules = `The profile %s has to allow what building a jail takes. Add these rules to it and load it again with apparmor_parser -r:

    userns,
    mount,
    remount,
    umount,
    pivot_root,`

	seccompFilter = `The filter has to let bubblewrap make namespaces. In a copy of the container runtime's own seccomp profile, add this to "syscalls" and start the container with that copy:

    {
      "action": "SCMP_ACT_ALLOW",
      "names": ["clone", "clone3", "unshare", "setns", "mount", "umount2", "pivot_root",
                "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"]
    }

A systemd unit that filters: RestrictNamespaces= and SystemCallFilter= of the unit that starts the helper have to allow the same.`

	procCovered = `A jail needs a /proc of its own, and the kernel makes none for whoever cannot see all of the present one. What covers it protects the container and has to stay; so start sandboxd where /proc is whole.`

	procOptions = `A jail needs a /proc of its own, and the kernel makes none for whoever cannot see all of the present one. Where a systemd unit starts the helper, its ProtectProc= and ProcSubset= make such a /proc: the jail hides more than they do, so start the helper from a unit of its own that has neither.`

	lsmList = `Boot with landlock in the list of security modules. This kernel's list is now

    %s

so add to the kernel's command line (GRUB: GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub)

    lsm=landlock,%s`

	unit = `Give the program that starts helpers a cgroup that it may divide. As a systemd unit, here /etc/systemd/system/broker.service:

    [Service]
    ExecStart=/usr/local/bin/broker
    User=broker
    Delegate=memory pids
    DelegateSubgroup=main
    Environment=SANDBOXD_CGROUP_BASE=/sys/fs/cgroup/system.slice/%n

DelegateSubgroup= is of systemd 254 and later: it keeps the unit's own cgroup free of processes, as the kernel asks for. Before that, the broker has to move itself into a subgroup first.`

	noSystemd = `Give the program that starts helpers a cgroup without processes of its own, with the controllers memory and pids, and name it with --cgroup-base. As root, where /sys/fs/cgroup is cgroup v2 and writable:

    echo '+memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
    mkdir /sys/fs/cgroup/sandboxd
    sandboxd run --cgroup-base /sys/fs/cgroup/sandboxd --mem 1G -- COMMAND`

	unified = `Boot the machine with cgroup v2 alone. On the kernel's command line:

    systemd.unified_cgroup_hierarchy=1`
)
