//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// isVictim tells a process of the jail that has the victim's number by chance from it.
func (w *world) isVictim(pid int) error {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return unix.ESRCH
	}
	if !bytes.Contains(b, []byte("victim-"+w.Nonce)) {
		return unix.ESRCH
	}
	return nil
}

// on makes a call that names the victim by its number.
func on(do func(w *world, pid int) error) func(*world) error {
	return func(w *world) error {
		if err := do(w, w.Victim.PID); err != nil {
			return err
		}
		return w.isVictim(w.Victim.PID)
	}
}

// signalAttacks reach a process outside by a signal or change how it runs. Signal 0
// and SIGCONT harm nothing, and the kernel asks the same of every signal.
func signalAttacks() []attack {
	sys := func(nr uintptr, args ...uintptr) func(*world) error {
		return on(func(w *world, pid int) error {
			a := append([]uintptr{uintptr(pid)}, args...)
			a = append(a, 0, 0, 0, 0, 0)
			_, err := call(nr, a[0], a[1], a[2], a[3], a[4], a[5])
			return err
		})
	}
	info := [16]uint64{} // siginfo_t: si_signo, si_errno, then si_code -1 (SI_QUEUE)
	info[0], info[1] = 0, 0xffffffff
	return []attack{
		{name: "signal: kill", do: on(func(_ *world, pid int) error { return unix.Kill(pid, 0) })},
		{name: "signal: SIGCONT", do: on(func(_ *world, pid int) error { return unix.Kill(pid, unix.SIGCONT) })},
		{name: "signal: tkill", do: sys(unix.SYS_TKILL, 0)},
		{name: "signal: tgkill", do: on(func(_ *world, pid int) error { return unix.Tgkill(pid, pid, 0) })},
		{name: "signal: the process group", do: on(func(_ *world, pid int) error { return unix.Kill(-pid, 0) })},
		{name: "signal: rt_sigqueueinfo", do: on(func(_ *world, pid int) error {
			_, err := call(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(unix.SIGCONT), uintptr(unsafe.Pointer(&info[0])), 0, 0, 0)
			return err
		})},
		{name: "signal: pidfd_send_signal", do: on(func(_ *world, pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, 0, nil, 0)
		})},
		{name: "signal: by a pidfd of /proc", do: on(func(_ *world, pid int) error {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d", pid), unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, 0, nil, 0)
		})},
		{name: "signal: F_SETOWN", do: on(func(_ *world, pid int) error {
			var p [2]int
			if err := unix.Pipe(p[:]); err != nil {
				return err
			}
			_, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, pid)
			return err
		})},
		{name: "process: find it", do: func(w *world) error {
			return w.everyPID(func(dir string) error {
				b, err := os.ReadFile(dir + "/cmdline")
				if err == nil && !bytes.Contains(b, []byte("victim-"+w.Nonce)) {
					err = errMissed
				}
				return err
			})
		}},
		{name: "process: getsid", do: sys(unix.SYS_GETSID)},
		{name: "process: prlimit", do: on(func(_ *world, pid int) error {
			var old unix.Rlimit
			return unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old)
		})},
		{name: "process: setpriority", do: sys2(unix.SYS_SETPRIORITY)},
		{name: "process: sched_setaffinity", do: on(func(_ *world, pid int) error {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(pid, &set); err != nil {
				return err
			}
			return unix.SchedSetaffinity(pid, &set)
		})},
		{name: "process: ioprio_set", do: on(func(_ *world, pid int) error {
			_, err := call(unix.SYS_IOPRIO_SET, 1, uintptr(pid), 2<<13|7, 0, 0, 0) // IOPRIO_WHO_PROCESS, best effort
			return err
		})},
		{name: "process: get_robust_list", do: on(func(_ *world, pid int) error {
			var head, size uintptr
			_, err := call(unix.SYS_GET_ROBUST_LIST, uintptr(pid), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&size)), 0, 0, 0)
			return err
		})},
		{name: "process: move_pages", needs: "NUMA", do: on(func(_ *world, pid int) error {
			_, err := call(unix.SYS_MOVE_PAGES, uintptr(pid), 0, 0, 0, 0, 0)
			return err
		})},
		{name: "process: perf_event_open", needs: "perf events", do: on(func(_ *world, pid int) error {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
			attr.Size = uint32(unsafe.Sizeof(attr))
			_, err := unix.PerfEventOpen(&attr, pid, -1, -1, 0)
			return err
		})},
	}
}

func sys2(nr uintptr) func(*world) error {
	return on(func(_ *world, pid int) error { _, err := call(nr, 0, uintptr(pid), 5, 0, 0, 0); return err })
}

// hold is one way to take hold of a process.
type hold struct {
	name string
	do   func(w *world, pid int) error
}

var holds = []hold{
	{"ptrace attach", func(_ *world, pid int) error { return unix.PtraceAttach(pid) }},
	{"ptrace seize", func(_ *world, pid int) error { return unix.PtraceSeize(pid) }},
	{"/proc/PID/mem", func(_ *world, pid int) error {
		_, err := unix.Open(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDWR, 0)
		return err
	}},
	{"/proc/PID/environ", func(_ *world, pid int) error {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && len(b) == 0 {
			err = errMissed
		}
		return err
	}},
	{"/proc/PID/maps", func(_ *world, pid int) error {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		if err == nil && len(b) == 0 {
			err = errMissed
		}
		return err
	}},
	{"/proc/PID/root", func(_ *world, pid int) error { _, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/", pid)); return err }},
	{"/proc/PID/cwd", func(_ *world, pid int) error { _, err := os.ReadDir(fmt.Sprintf("/proc/%d/cwd/", pid)); return err }},
	{"/proc/PID/fd", func(_ *world, pid int) error { _, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid)); return err }},
	{"pidfd_getfd", func(_ *world, pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 0, 0)
		return err
	}},
	{"process_vm_readv", func(w *world, pid int) error { return w.vm(pid, unix.ProcessVMReadv) }},
	{"process_madvise", func(w *world, pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		iov := unix.RemoteIovec{Base: uintptr(w.Victim.Address) &^ 4095, Len: 4096}
		_, err = call(unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&iov)), 1, unix.MADV_COLD, 0, 0)
		return err
	}},
	{"kcmp", func(_ *world, pid int) error {
		_, err := call(unix.SYS_KCMP, uintptr(pid), uintptr(pid), 1, 0, 0, 0) // KCMP_VM
		return err
	}},
}

func (w *world) vm(pid int, do func(int, []unix.Iovec, []unix.RemoteIovec, uint) (int, error)) error {
	buf := make([]byte, len(w.Secret))
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(len(buf))
	n, err := do(pid, local, []unix.RemoteIovec{{Base: uintptr(w.Victim.Address), Len: len(buf)}}, 0)
	if err == nil && string(buf[:n]) != w.Secret {
		err = errMissed
	}
	return err
}

func holdAttacks() []attack {
	var list []attack
	for _, h := range holds {
		a := attack{name: "hold: " + h.name, do: on(h.do)}
		switch h.name {
		case "process_madvise": // before 5.10 there was none, and until 6.13 it needed CAP_SYS_NICE
			a.needs, a.root = "process_madvise", true
		case "kcmp":
			a.needs = "kcmp"
		}
		list = append(list, a)
	}
	write := attack{name: "hold: process_vm_writev", do: on(func(w *world, pid int) error {
		return w.vm(pid, func(pid int, l []unix.Iovec, r []unix.RemoteIovec, f uint) (int, error) {
			copy(unsafe.Slice(l[0].Base, len(w.Secret)), w.Secret)
			return unix.ProcessVMWritev(pid, l, r, f)
		})
	})}
	return append(list, write)
}

// initAttacks are after bubblewrap's init, the one process of the jail that is not the
// command's: whoever holds it outlives the helper. Without a jail it is the victim.
func initAttacks() []attack {
	var list []attack
	for _, h := range holds {
		switch h.name {
		case "process_vm_readv", "process_madvise", "kcmp":
			continue
		}
		list = append(list, attack{name: "init: " + h.name, do: func(w *world) error {
			pid := 1
			if !w.Jailed {
				pid = w.Victim.PID
			}
			return h.do(w, pid)
		}})
	}
	return append(list, attack{name: "init: process_vm_readv", do: func(w *world) error {
		if w.Jailed {
			var b [1]byte
			local := []unix.Iovec{{Base: &b[0], Len: 1}}
			_, err := unix.ProcessVMReadv(1, local, []unix.RemoteIovec{{Base: 0x400000, Len: 1}}, 0)
			if err == unix.EFAULT { // it may look, there was nothing
				return nil
			}
			return err
		}
		return w.vm(w.Victim.PID, unix.ProcessVMReadv)
	}}, attack{name: "init: kill", do: func(w *world) error {
		pid := 1
		if !w.Jailed {
			pid = w.Victim.PID // SIGCONT harms nothing there
			return unix.Kill(pid, unix.SIGCONT)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			return err
		}
		// Init takes no signal that it does not handle (pid_namespaces(7)): had it
		// ended, so had this process.
		time.Sleep(50 * time.Millisecond)
		return errMissed
	}}, attack{name: "init: stop", do: func(w *world) error {
		pid := 1
		if !w.Jailed {
			pid = w.Victim.PID
		}
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			return err
		}
		defer unix.Kill(pid, unix.SIGCONT)
		for range 20 {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				return err
			}
			if strings.Contains(string(b), ") T ") {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		return errMissed
	}})
}

// ipcAttacks use what is shared by name and not by file.
func ipcAttacks() []attack {
	return []attack{
		{name: "ipc: System V shared memory", do: func(w *world) error {
			id, err := unix.SysvShmGet(w.Victim.Shm, 0, 0)
			if err != nil {
				return err
			}
			b, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
			if err == nil && !strings.HasPrefix(string(b), w.Secret) {
				err = errMissed
			}
			return err
		}},
		{name: "ipc: System V shared memory by number", do: func(w *world) error {
			return until(numbers(0, 256), func(index int) error {
				var ds [256]byte                                                                               // struct shmid_ds
				id, err := call(unix.SYS_SHMCTL, uintptr(index), 13, uintptr(unsafe.Pointer(&ds[0])), 0, 0, 0) // SHM_STAT
				if err != nil {
					return err
				}
				b, err := unix.SysvShmAttach(int(id), 0, unix.SHM_RDONLY)
				if err == nil && !strings.HasPrefix(string(b), w.Secret) {
					err = errMissed
				}
				return err
			})
		}},
		{name: "ipc: System V messages", do: func(w *world) error {
			_, err := call(unix.SYS_MSGGET, uintptr(w.Victim.Msg), 0, 0, 0, 0, 0)
			return err
		}},
		{name: "ipc: System V semaphores", do: func(w *world) error {
			_, err := call(unix.SYS_SEMGET, uintptr(w.Victim.Sem), 0, 0, 0, 0, 0)
			return err
		}},
		{name: "ipc: POSIX message queue", needs: "message queues", do: func(w *world) error {
			name, err := unix.BytePtrFromString(w.Victim.Queue)
			if err != nil {
				return err
			}
			_, err = call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDONLY, 0, 0, 0, 0)
			return err
		}},
		{name: "ipc: POSIX shared memory", do: func(w *world) error { return w.reads(w.Victim.Memory) }},
		{name: "ipc: a keyring of the session", needs: "keyrings", do: func(*world) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
			return err
		}},
		{name: "ipc: the user's keyring", needs: "keyrings", do: func(*world) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
			return err
		}},
		{name: "ipc: add a key", needs: "keyrings", do: func(*world) error {
			_, err := unix.AddKey("user", "sandboxd-attack", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}},
		{name: "ipc: request a key", needs: "keyrings", do: func(*world) error {
			_, err := unix.RequestKey("user", "sandboxd-no-such-key", "", 0)
			if err == unix.ENOKEY || err == unix.ENOENT {
				return nil // it looked, and asked the helper of /sbin
			}
			return err
		}},
		{name: "ipc: a new session keyring", needs: "keyrings", do: func(*world) error {
			_, err := unix.KeyctlJoinSessionKeyring("sandboxd-attack")
			return err
		}},
	}
}

// stay is a process that would like to outlive everything: it ends when its parent's
// test would be long over.
func stay([]string) int {
	for n := range 64 {
		_ = syscall.Close(n) // no pipe gives it away
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE} {
		ignore(s)
	}
	time.Sleep(90 * time.Second)
	return 0
}

// stayAttacks leave a process behind. It is looked for from outside at the end.
func stayAttacks() []attack {
	leave := func(name string, change func(cmd *exec.Cmd)) attack {
		return attack{name: "stay: " + name, do: func(w *world) error {
			cmd := exec.Command("/proc/self/exe", "@stay", w.tag())
			cmd.SysProcAttr = &syscall.SysProcAttr{}
			change(cmd)
			if err := cmd.Start(); err != nil {
				return err
			}
			for range 2000 {
				if alive(w.tag()) == nil {
					return nil
				}
				time.Sleep(5 * time.Millisecond)
			}
			return errMissed
		}, after: func(w *world) error { return alive(w.tag()) }}
	}
	script := func(name, text string) attack {
		return leave(name, func(cmd *exec.Cmd) {
			self, _ := os.Executable()
			cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", text, "sh", self, cmd.Args[2]}
		})
	}
	return []attack{
		leave("a child", func(*exec.Cmd) {}),
		leave("a session of its own", func(cmd *exec.Cmd) { cmd.SysProcAttr.Setsid = true }),
		leave("a process group of its own", func(cmd *exec.Cmd) { cmd.SysProcAttr.Setpgid = true }),
		leave("a sibling", func(cmd *exec.Cmd) { cmd.SysProcAttr.Cloneflags = unix.CLONE_PARENT }),
		script("a double fork", `(setsid "$1" @stay "$2" & ) & wait`),
		script("a triple fork", `( ( setsid "$1" @stay "$2" & ) & ) & wait`),
		script("stopped", `setsid "$1" @stay "$2" & sleep 0.2; kill -STOP $!`),
		script("with the lowest priority", `setsid nice -n 19 "$1" @stay "$2" &`),
	}
}

func (w *world) tag() string { return "stays-" + w.Nonce + "-" + safe(w.name) }

// alive looks for a process with an argument.
func alive(tag string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, e := range entries {
		b, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if bytes.Contains(b, []byte("@stay\x00"+tag+"\x00")) {
			return nil
		}
	}
	return errMissed
}
