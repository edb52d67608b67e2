//go:build linux

package attack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func ignore(s syscall.Signal) { signal.Ignore(s) }

// reaches makes a call that is wrong on purpose: behind the kernel's question for a
// privilege it fails with one of errnos, which says that the question was passed. It
// changes nothing.
func reaches(nr uintptr, args []uintptr, errnos ...unix.Errno) func(*world) error {
	return func(*world) error {
		a := append(args[:len(args):len(args)], 0, 0, 0, 0, 0, 0)
		_, err := call(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		for _, e := range errnos {
			if err == e {
				return nil
			}
		}
		return err
	}
}

// absentPath is the program's own, so that it stays where the kernel is told it is: a
// call with a stale address could do anything.
var absentPath = [...]byte{'/', 's', 'a', 'n', 'd', 'b', 'o', 'x', 'd', '-', 'a', 'b', 's', 'e', 'n', 't', 0}

var absent = uintptr(unsafe.Pointer(&absentPath[0]))

// privilegeAttacks use what a capability or a set-user-ID bit gives.
func privilegeAttacks() []attack {
	return []attack{
		{name: "privilege: an effective capability", root: true, do: func(*world) error {
			var data [2]unix.CapUserData
			if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
				return err
			}
			if data[0].Effective|data[0].Permitted|data[1].Effective|data[1].Permitted == 0 {
				return errMissed
			}
			return nil
		}},
		{name: "privilege: new ones by execve", do: func(*world) error {
			got, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if err == nil && got != 0 {
				err = errMissed
			}
			return err
		}},
		{name: "privilege: change the bounding set", root: true, do: func(*world) error {
			_, err := unix.PrctlRetInt(unix.PR_CAPBSET_DROP, unix.CAP_WAKE_ALARM, 0, 0, 0)
			return err
		}},
		{name: "privilege: a set-user-ID program shown as such", do: func(*world) error {
			return until([]string{"/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/bin/su"}, func(p string) error {
				var st unix.Statfs_t
				if err := unix.Statfs(p, &st); err != nil {
					return err
				}
				if st.Flags&unix.ST_NOSUID != 0 {
					return errMissed
				}
				return nil
			})
		}},
		{name: "privilege: a file capability", root: true, needs: "file capabilities", do: func(w *world) error {
			file := w.Base + "/ws/caps-" + w.Nonce
			data := []byte{1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // VFS_CAP_REVISION_2: cap_chown
			return steps(func() error { return os.WriteFile(file, nil, 0o755) }, func() error { return unix.Setxattr(file, "security.capability", data, 0) })
		}},
		{name: "privilege: another user's file", root: true, do: func(w *world) error {
			file := w.Base + "/ws/own-" + w.Nonce
			return steps(func() error { return os.WriteFile(file, nil, 0o755) }, func() error { return os.Chown(file, 12345, 12345) })
		}},
		{name: "privilege: setuid", root: true, do: func(*world) error {
			_, err := call(unix.SYS_SETUID, 12345, 0, 0, 0, 0, 0)
			return err
		}},
		{name: "privilege: setgroups", root: true, do: func(*world) error {
			group := uint32(12345)
			_, err := call(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&group)), 0, 0, 0, 0)
			return err
		}},
		{name: "privilege: a high priority", root: true, do: func(*world) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -20) }},
		{name: "privilege: real-time scheduling", root: true, do: func(*world) error {
			priority := int32(1)
			_, err := call(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_FIFO, uintptr(unsafe.Pointer(&priority)), 0, 0, 0)
			return err
		}, needs: "real-time budget of the cgroup"},
		{name: "privilege: real-time input and output", root: true, do: reaches(unix.SYS_IOPRIO_SET, []uintptr{1, 0, 1 << 13})},
		{name: "privilege: the host's name", root: true, do: func(*world) error {
			var u unix.Utsname
			if err := unix.Uname(&u); err != nil {
				return err
			}
			return unix.Sethostname(u.Nodename[:bytes.IndexByte(u.Nodename[:], 0)])
		}},
		{name: "privilege: reboot", root: true, do: reaches(unix.SYS_REBOOT, []uintptr{1, 2, 3}, unix.EINVAL)},
		{name: "privilege: swapon", root: true, do: reaches(unix.SYS_SWAPON, []uintptr{absent}, unix.ENOENT)},
		{name: "privilege: accounting", root: true, do: reaches(unix.SYS_ACCT, []uintptr{absent}, unix.ENOENT), needs: "process accounting"},
		{name: "privilege: load a module", root: true, do: reaches(unix.SYS_INIT_MODULE, []uintptr{absent, 16, absent}, unix.ENOEXEC, unix.EINVAL), needs: "modules"},
		{name: "privilege: load a module from a file", root: true, do: reaches(unix.SYS_FINIT_MODULE, []uintptr{^uintptr(0), absent}, unix.EBADF), needs: "modules"},
		{name: "privilege: remove a module", root: true, do: reaches(unix.SYS_DELETE_MODULE, []uintptr{absent}, unix.ENOENT), needs: "modules"},
		{name: "privilege: another kernel", root: true, do: reaches(unix.SYS_KEXEC_LOAD, []uintptr{0, 99, absent, 1 << 40}, unix.EINVAL), needs: "kexec"},
		{name: "privilege: bpf", needs: "bpf", root: true, do: func(*world) error {
			var attr [128]byte // BPF_MAP_CREATE of an array with one 4-byte value
			for i, v := range []byte{2, 4, 4, 1} {
				attr[4*i] = v
			}
			_, err := call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr[0])), uintptr(len(attr)), 0, 0, 0)
			return err
		}},
		{name: "privilege: userfaultfd", needs: "userfaultfd", do: func(*world) error {
			_, err := call(unix.SYS_USERFAULTFD, 1, 0, 0, 0, 0, 0) // UFFD_USER_MODE_ONLY
			return err
		}},
		{name: "privilege: ports of the machine", needs: "iopl", root: true, do: func(*world) error {
			_, err := call(sysIopl, 3, 0, 0, 0, 0, 0)
			return err
		}},
		{name: "privilege: calls without a filter", do: func(*world) error {
			b, err := os.ReadFile("/proc/self/status")
			if err == nil && !strings.Contains(string(b), "\nSeccomp:\t0\n") {
				err = errMissed
			}
			return err
		}, needs: "a test run without a filter"},
		{name: "privilege: a filter of its own that allows all", do: func(*world) error {
			// The strictest of all filters decides (seccomp(2)).
			filter := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
			prog := unix.SockFprog{Len: 1, Filter: &filter[0]}
			_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			if _, err := call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)), 0, 0, 0); err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}},
	}
}

// resourceAttacks exceed a ceiling. Those of memory and tasks need a cgroup and have
// tests of their own in internal/e2e.
func resourceAttacks() []attack {
	own := func(w *world) string { return w.Base + "/ws/big-" + safe(w.name) }
	sized := func(name string, do func(fd int) error) attack {
		return attack{name: "resource: " + name, do: func(w *world) error {
			fd, err := unix.Open(own(w), unix.O_CREAT|unix.O_RDWR, 0o600)
			if err != nil {
				return err
			}
			defer os.Remove(own(w))
			ignore(unix.SIGXFSZ) // the limit's signal; the errno then says the same
			return do(fd)
		}}
	}
	raise := func(name string, what int) attack {
		return attack{name: "resource: raise the limit of " + name, do: func(*world) error {
			return unix.Setrlimit(what, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
		}}
	}
	tmpfs := func(dir string) attack {
		return attack{name: "resource: fill " + dir, needs: "a larger " + dir, do: func(w *world) error {
			var st unix.Statfs_t
			if err := unix.Statfs(dir, &st); err != nil {
				return err
			}
			// Asking for the room takes none where it is not granted.
			if uint64(st.Blocks)*uint64(st.Bsize) > tmpfsCeiling {
				return nil
			}
			return unix.ENOSPC
		}}
	}
	lower := func(name string, call func() error) attack {
		return attack{name: "resource: lower the limit of core files " + name, do: func(*world) error {
			// At 0 a crash would start the host's handler of core_pattern, at 1 it does not.
			if err := call(); err != nil {
				return err
			}
			var now unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_CORE, &now); err != nil || now.Cur != 0 {
				return errors.Join(err, errMissed)
			}
			return nil
		}}
	}
	core := raise("core files", unix.RLIMIT_CORE)
	core.root = true // elsewhere a hard limit of 0 is common
	core.do = func(*world) error {
		now := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		if err := errors.Join(unix.Setrlimit(unix.RLIMIT_CORE, &now), unix.Getrlimit(unix.RLIMIT_CORE, &now)); err != nil || now.Cur == 1<<20 {
			return err
		}
		return errMissed // the call said that it was done
	}
	return []attack{
		sized("a file by one write behind the limit", func(fd int) error { _, err := unix.Pwrite(fd, []byte("x"), fileCeiling); return err }),
		sized("a sparse file by truncate", func(fd int) error { return unix.Ftruncate(fd, 1<<40) }),
		sized("a sparse file by a far write", func(fd int) error { _, err := unix.Pwrite(fd, []byte("x"), 1<<40); return err }),
		sized("a file by fallocate", func(fd int) error { return unix.Fallocate(fd, 0, 0, fileCeiling+4096) }),
		sized("a file by splice", func(fd int) error {
			var p [2]int
			if err := unix.Pipe(p[:]); err != nil {
				return err
			}
			_, _ = unix.Write(p[1], []byte("x"))
			at := int64(fileCeiling)
			_, err := unix.Splice(p[0], nil, fd, &at, 1, 0)
			return err
		}),
		sized("a file by sendfile", func(fd int) error {
			if _, err := unix.Seek(fd, fileCeiling, 0); err != nil {
				return err
			}
			self, err := unix.Open("/proc/self/exe", unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			_, err = unix.Sendfile(fd, self, nil, 1)
			return err
		}),
		{name: "resource: a file by a child with its own limits", root: true, do: func(w *world) error {
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}); err != nil {
				return err
			}
			fd, err := unix.Open(own(w), unix.O_CREAT|unix.O_RDWR, 0o600)
			if err != nil {
				return err
			}
			defer os.Remove(own(w))
			return unix.Ftruncate(fd, 1<<40)
		}},
		raise("file size", unix.RLIMIT_FSIZE),
		lower("by setrlimit", func() error {
			_, err := call(unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(&noCore)), 0, 0, 0, 0)
			return err
		}),
		lower("by prlimit", func() error { return unix.Prlimit(0, unix.RLIMIT_CORE, &noCore, nil) }),
		lower("by prlimit with the old one", func() error { var old unix.Rlimit; return unix.Prlimit(0, unix.RLIMIT_CORE, &noCore, &old) }),
		lower("with high bits", func() error {
			_, err := call(unix.SYS_SETRLIMIT, 1<<32|unix.RLIMIT_CORE, uintptr(unsafe.Pointer(&noCore)), 0, 0, 0, 0)
			return err
		}),
		core,
		{name: "resource: raise the limit of CPU time", do: func(*world) error {
			return unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
		}},
		tmpfs("/tmp"), tmpfs("/dev/shm"),
		{name: "resource: a file in /dev", root: true, do: func(w *world) error {
			path := "/dev/sandboxd-attack-" + w.Nonce
			defer os.Remove(path)
			return put(path, os.O_CREATE)
		}},
		{name: "resource: lock all memory", root: true, do: func(*world) error {
			return unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
		}, needs: "no limit on locked memory already"},
		{name: "resource: raise the limit of descriptors", root: true, do: func(*world) error {
			var old unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
				return err
			}
			return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: old.Cur, Max: old.Max + 1})
		}, needs: "CAP_SYS_RESOURCE"},
		{name: "resource: spare the out-of-memory killer", root: true, do: func(*world) error { return put2("/proc/self/oom_score_adj", "-1000") }, needs: "CAP_SYS_RESOURCE"},
	}
}

var noCore unix.Rlimit

func put2(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return err
}

// The ceilings of the jail that the corpus runs in, in bytes.
const (
	fileCeiling  = 4 << 20
	tmpfsCeiling = 512 << 20
)

// descriptorAttacks use what the helper may have left open.
func descriptorAttacks() []attack {
	each := func(name string, to int, do func(w *world, fd int) error, make func() (int, error)) attack {
		return attack{name: "descriptor: " + name, setup: func(*world) error {
			fd, err := make()
			if err != nil {
				return err
			}
			return unix.Dup3(fd, to, 0)
		}, do: func(w *world) error {
			return until(numbers(3, 256), func(fd int) error {
				// The runtime's own are close-on-exec, which an inherited one never is.
				flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
				if err == nil && flags&unix.FD_CLOEXEC != 0 {
					err = errMissed
				}
				if err != nil {
					return err
				}
				return do(w, fd)
			})
		}}
	}
	pipe := func() (int, error) {
		var p [2]int
		err := unix.Pipe2(p[:], unix.O_CLOEXEC)
		return p[1], err
	}
	return []attack{
		each("any above 2", 72, func(*world, int) error { return nil }, pipe),
		each("forge stage 2's report on it", 73, func(_ *world, fd int) error {
			_, err := unix.Write(fd, []byte("forged"))
			return err
		}, pipe),
		each("read what stage 2 was told", 74, func(_ *world, fd int) error {
			b := make([]byte, 16)
			n, err := unix.Pread(fd, b, 0)
			if err == nil && n == 0 {
				err = errMissed
			}
			return err
		}, func() (int, error) {
			fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
			if err == nil {
				_, err = unix.Write(fd, []byte("specification"))
			}
			return fd, err
		}),
		{name: "descriptor: the policy in init's arguments", do: func(w *world) error {
			pid := 1
			if !w.Jailed {
				pid = w.Victim.PID
			}
			return shows(fmt.Sprintf("/proc/%d/cmdline", pid), w.Base)
		}},
		{name: "descriptor: the token in any memory that shows", do: func(w *world) error {
			return w.everyPID(func(dir string) error {
				return until([]string{"/environ", "/cmdline"}, func(f string) error { return shows(dir+f, "token-"+w.Nonce) })
			})
		}},
	}
}

// terminalAttacks put words into a terminal of the host.
func terminalAttacks() []attack {
	return []attack{
		{name: "terminal: write to the host's", do: func(w *world) error { return put(w.Victim.PTY, 0) }},
		{name: "terminal: read the host's", do: func(w *world) error {
			_, err := unix.Open(w.Victim.PTY, unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
			return err
		}},
		{name: "terminal: take the host's", do: func(w *world) error {
			if _, err := unix.Setsid(); err != nil {
				return err
			}
			fd, err := unix.Open(w.Victim.PTY, unix.O_RDWR, 0) // becomes the controlling one
			if err != nil {
				return err
			}
			_, err = unix.IoctlGetInt(fd, unix.TIOCGSID)
			return err
		}},
		{name: "terminal: push input with TIOCSTI", needs: "TIOCSTI", do: push(unix.TIOCSTI)},
		{name: "terminal: push input with high bits", needs: "TIOCSTI", do: push(1<<32 | unix.TIOCSTI)},
		{name: "terminal: the console's selection", root: true, needs: "a virtual console", do: push(0x541c)},
		{name: "terminal: open the console", root: true, needs: "/dev/console", do: func(*world) error {
			_, err := unix.Open("/dev/console", unix.O_WRONLY|unix.O_NOCTTY, 0)
			return err
		}},
		{name: "terminal: open a virtual console", root: true, needs: "/dev/tty0", do: func(*world) error {
			return until([]string{"/dev/tty0", "/dev/tty1", "/dev/ttyS0"}, func(p string) error {
				_, err := unix.Open(p, unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
				return err
			})
		}},
	}
}

// push makes the ioctl on a pseudo-terminal of its own that controls it.
func push(request uintptr) func(*world) error {
	return func(*world) error {
		if _, err := unix.Setsid(); err != nil && err != unix.EPERM {
			return err
		}
		name, err := openPTY()
		if err != nil {
			return err
		}
		fd, err := unix.Open(name, unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		c := byte('x')
		_, err = call(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&c)), 0, 0, 0)
		return err
	}
}
