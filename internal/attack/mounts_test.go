//go:build linux

package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// masked puts an empty tmpfs over the protected directory, as the jail does: what the
// control takes away again, with the privileges that a jail does not leave.
func masked(w *world) error { return unix.Mount("tmpfs", w.secret(), "tmpfs", 0, "") }

// bound makes the readable file's directory a read-only mount.
func bound(w *world) error {
	dir := w.dir("ro")
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// mountAttacks need a capability: as root without a jail, and for any user in a user
// namespace of its own, where the kernel makes one.
func mountAttacks() []attack {
	var list []attack
	for _, way := range []struct {
		name  string
		do    func(w *world) error
		setup func(w *world) error
		not   string // "user": not possible in a user namespace of one's own
		needs string
	}{
		{name: "bind a file elsewhere", do: func(w *world) error {
			return unix.Mount(w.out("secret"), w.ws("own"), "", unix.MS_BIND, "")
		}},
		{name: "bind the workspace elsewhere", do: func(w *world) error {
			if err := unix.Mount(w.dir("ws"), w.ws("mine"), "", unix.MS_BIND, ""); err != nil {
				return err
			}
			return w.reads(w.ws("mine/.secret/key"))
		}, setup: masked},
		{name: "bind over /proc", do: func(w *world) error { return unix.Mount(w.dir("ws"), "/proc", "", unix.MS_BIND, "") }},
		{name: "bind over /etc/passwd", do: func(w *world) error { return unix.Mount(w.ws("own"), "/etc/passwd", "", unix.MS_BIND, "") }},
		{name: "unmount a mask", setup: masked, do: func(w *world) error {
			if err := unix.Unmount(w.secret(), 0); err != nil {
				return err
			}
			return w.reads(w.key())
		}},
		{name: "detach a mask", setup: masked, do: func(w *world) error {
			if err := unix.Unmount(w.secret(), unix.MNT_DETACH); err != nil {
				return err
			}
			return w.reads(w.key())
		}},
		{name: "move a mask", setup: masked, do: func(w *world) error {
			if err := unix.Mount(w.secret(), w.ws("mine"), "", unix.MS_MOVE, ""); err != nil {
				return err
			}
			return w.reads(w.key())
		}},
		{name: "move_mount a mask", setup: masked, do: func(w *world) error {
			if err := unix.MoveMount(unix.AT_FDCWD, w.secret(), unix.AT_FDCWD, w.ws("mine"), 0); err != nil {
				return err
			}
			return w.reads(w.key())
		}},
		{name: "open_tree below a mask", setup: masked, do: func(w *world) error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, w.dir("ws"), unix.OPEN_TREE_CLONE)
			if err != nil {
				return err
			}
			got, err := unix.Openat(fd, ".secret/key", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			return w.reads(fmt.Sprintf("/proc/self/fd/%d", got))
		}},
		{name: "remount writable", setup: bound, do: func(w *world) error {
			if err := unix.Mount("", w.dir("ro"), "", unix.MS_BIND|unix.MS_REMOUNT, ""); err != nil {
				return err
			}
			return put(w.ro("file"), 0)
		}},
		{name: "mount_setattr writable", needs: "mount_setattr", setup: bound, do: func(w *world) error {
			if err := unix.MountSetattr(unix.AT_FDCWD, w.dir("ro"), 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
				return err
			}
			return put(w.ro("file"), 0)
		}},
		{name: "change the propagation", do: func(w *world) error { return unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, "") }},
		{name: "mount a tmpfs over the workspace", do: func(w *world) error { return unix.Mount("tmpfs", w.dir("ws"), "tmpfs", 0, "") }},
		{name: "mount an overlay over what is readable", needs: "overlay", do: func(w *world) error {
			return steps(func() error { return unix.Mount("tmpfs", w.ws("mine"), "tmpfs", 0, "") },
				func() error { return os.MkdirAll(w.ws("mine/up"), 0o755) }, func() error { return os.MkdirAll(w.ws("mine/work"), 0o755) },
				func() error {
					return unix.Mount("overlay", w.dir("ro"), "overlay", 0, "lowerdir="+w.dir("ro")+",upperdir="+w.ws("mine/up")+",workdir="+w.ws("mine/work"))
				})
		}},
		{name: "mount proc", do: func(w *world) error { return unix.Mount("proc", w.ws("mine"), "proc", 0, "") }},
		{name: "mount sysfs", not: "user", do: func(w *world) error { return unix.Mount("sysfs", w.ws("mine"), "sysfs", 0, "") }},
		{name: "mount devpts", do: func(w *world) error { return unix.Mount("devpts", w.ws("mine"), "devpts", 0, "newinstance") }},
		{name: "mount mqueue", not: "user", do: func(w *world) error { return unix.Mount("mqueue", w.ws("mine"), "mqueue", 0, "") }},
		{name: "mount cgroup2", not: "user", needs: "cgroup v2", do: func(w *world) error { return unix.Mount("cgroup2", w.ws("mine"), "cgroup2", 0, "") }},
		{name: "fsopen and fsmount", do: func(w *world) error {
			fd, err := unix.Fsopen("tmpfs", 0)
			if err != nil {
				return err
			}
			if _, err = call(431, uintptr(fd), 6, 0, 0, 0, 0); err != nil { // fsconfig, FSCONFIG_CMD_CREATE
				return err
			}
			at, err := unix.Fsmount(fd, 0, 0)
			if err != nil {
				return err
			}
			return unix.MoveMount(at, "", unix.AT_FDCWD, w.ws("mine"), unix.MOVE_MOUNT_F_EMPTY_PATH)
		}},
		{name: "fspick the root", do: func(w *world) error { _, err := unix.Fspick(unix.AT_FDCWD, "/", 0); return err }, not: "user"},
		{name: "pivot_root", do: func(w *world) error {
			new := w.ws("mine")
			return steps(func() error { return unix.Mount(new, new, "", unix.MS_BIND, "") }, func() error { return os.MkdirAll(filepath.Join(new, "old"), 0o755) },
				func() error { return unix.PivotRoot(new, filepath.Join(new, "old")) })
		}},
		{name: "chroot", do: func(w *world) error { return unix.Chroot(w.dir("ws")) }},
		{name: "mknod a disk", not: "user", do: func(w *world) error { return unix.Mknod(w.ws("disk"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))) }},
		{name: "mknod /dev/mem", not: "user", do: func(w *world) error { return unix.Mknod(w.ws("mem"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))) }},
		{name: "mknod a terminal", not: "user", do: func(w *world) error { return unix.Mknod(w.ws("tty"), unix.S_IFCHR|0o600, int(unix.Mkdev(5, 0))) }},
		{name: "mark files by fanotify", not: "user", needs: "fanotify", do: func(w *world) error {
			fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF, 0)
			if err != nil {
				return err
			}
			return unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_MOUNT, unix.FAN_OPEN, unix.AT_FDCWD, w.dir("ws"))
		}},
		{name: "enter the victim's mount namespace", not: "user", do: func(w *world) error { return w.enter("mnt", unix.CLONE_NEWNS) }},
		{name: "enter the network namespace of a pidfd", not: "user", do: func(w *world) error {
			fd, err := unix.PidfdOpen(w.Victim.PID, 0)
			if err != nil {
				return err
			}
			return unix.Setns(fd, unix.CLONE_NEWNET)
		}},
	} {
		list = append(list, attack{name: "mount: " + way.name, do: way.do, setup: way.setup, needs: way.needs, root: true, mounts: true})
		if way.not != "user" && !(way.name == "chroot") {
			list = append(list, attack{name: "user namespace: " + way.name, do: way.do, setup: way.setup, needs: way.needs, userns: true})
		}
	}
	return list
}

func (w *world) enter(kind string, flag int) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", w.Victim.PID, kind), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	if flag == unix.CLONE_NEWNS {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
	}
	return unix.Setns(fd, flag)
}

// systemAttacks are after the kernel's own files.
func systemAttacks() []attack {
	opened := func(path string, flags int) func(*world) error {
		return func(*world) error {
			fd, err := unix.Open(path, flags, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
	}
	var list []attack
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
		"/proc/sys/fs/suid_dumpable", "/proc/sys/kernel/yama/ptrace_scope", "/proc/irq/default_smp_affinity", "/dev/kmsg",
		"/dev/loop-control", "/dev/mem", "/dev/mapper/control", "/dev/fuse", "/dev/net/tun", "/dev/vhost-vsock", "/dev/kvm",
		"/sys/kernel/uevent_helper", "/sys/power/state", "/sys/fs/cgroup/cgroup.procs",
	} {
		list = append(list, attack{name: "open for writing " + path, root: true, needs: path, do: opened(path, unix.O_WRONLY)})
	}
	for _, path := range []string{"/proc/kcore", "/proc/kmsg", "/sys/kernel/debug", "/sys/kernel/security"} {
		list = append(list, attack{name: "open " + path, root: true, needs: path, do: opened(path, unix.O_RDONLY|unix.O_NONBLOCK)})
	}
	for _, path := range []string{"/proc/keys", "/proc/kpageflags", "/proc/kpagecount", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/pagetypeinfo", "/proc/timer_list", "/proc/kpagecgroup", "/proc/allocinfo"} {
		list = append(list, attack{name: "open " + path, root: true, needs: path, do: opened(path, unix.O_RDONLY)})
	}
	return append(list,
		attack{name: "list the host's network in /sys", do: func(*world) error { _, err := os.ReadDir("/sys/class/net"); return err }},
		attack{name: "list the host's cgroups", needs: "cgroups", do: func(*world) error { _, err := os.ReadDir("/sys/fs/cgroup"); return err }},
		attack{name: "read root's home", root: true, do: func(*world) error { _, err := os.ReadDir("/root"); return err }},
		attack{name: "read the kernel's log", root: true, do: func(*world) error {
			b := make([]byte, 64)
			_, err := unix.Klogctl(3, b) // SYSLOG_ACTION_READ_ALL
			return err
		}, open: "a root caller is the host's uid 0 for dmesg_restrict=0, as any user is there"},
		attack{name: "read /etc/shadow", root: true, do: func(*world) error {
			b, err := os.ReadFile("/etc/shadow")
			if err == nil && len(b) == 0 {
				err = errMissed
			}
			return err
		}},
		attack{name: "read a private file below /etc", root: true, do: func(w *world) error {
			return w.reads("/etc/sandboxd-attack-private-" + w.Nonce)
		}},
		attack{name: "unshare a user namespace", do: func(*world) error { return nil }, userns: true},
		attack{name: "clone3 a user namespace", do: clone3(unix.CLONE_NEWUSER)},
		attack{name: "clone3 a mount namespace", root: true, do: clone3(unix.CLONE_NEWNS)},
		attack{name: "clone3 a network namespace", root: true, do: clone3(unix.CLONE_NEWNET)},
		attack{name: "clone3 a pid namespace", root: true, do: clone3(unix.CLONE_NEWPID)},
		attack{name: "clone3 a time namespace", root: true, needs: "time namespaces", do: func(*world) error { return unix.Unshare(unix.CLONE_NEWTIME) }},
		attack{name: "clone3 a cgroup namespace", root: true, do: clone3(unix.CLONE_NEWCGROUP)},
	)
}

// clone3 makes a child in new namespaces. It ends at once.
func clone3(flags uint64) func(*world) error {
	return func(*world) error {
		// struct clone_args: flags, pidfd, child_tid, parent_tid, exit_signal, ...
		args := [8]uint64{flags, 0, 0, 0, uint64(unix.SIGCHLD)}
		pid, errno := rawClone3(uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
		runtime.KeepAlive(&args)
		if errno != 0 {
			return errno
		}
		_, err := unix.Wait4(int(pid), nil, 0, nil)
		return err
	}
}

// rawClone3's child may neither grow its stack nor allocate nor return: it ends.
//
//go:nosplit
//go:norace
func rawClone3(args, size uintptr) (uintptr, unix.Errno) {
	pid, _, errno := unix.RawSyscall(unix.SYS_CLONE3, args, size, 0)
	if errno == 0 && pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return pid, errno
}
