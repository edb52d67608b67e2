package testenv

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"sandboxd/internal/procfs"
)

// NoNewFDs fails the test at its end if this process then holds descriptors that it
// does not hold now. Use it in tests that are not parallel.
func NoNewFDs(tb testing.TB) {
	tb.Helper()
	openPoller()
	before := FDs(os.Getpid())
	tb.Cleanup(func() {
		var left map[int]string
		for range 200 {
			left = FDs(os.Getpid())
			for fd := range before {
				delete(left, fd)
			}
			if len(left) == 0 {
				return
			}
			Pause()
		}
		tb.Errorf("descriptors are left open: %v", left)
	})
}

// openPoller makes the runtime open its own epoll descriptors beforehand.
func openPoller() {
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
}

// FDs lists a process's descriptors with what they lead to.
func FDs(pid int) map[int]string {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, _ := os.ReadDir(dir)
	fds := map[int]string{}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		target, err2 := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil && err2 == nil && target != dir {
			fds[n] = target
		}
	}
	return fds
}

// Process is one row of the process table.
type Process struct {
	PID, PPID int
	State     string // one letter, "Z" for a zombie
	Comm      string
	PidNS     string // "pid:[4026531836]"
}

// Processes lists what is visible in /proc.
func Processes() map[int]Process {
	entries, _ := os.ReadDir("/proc")
	all := map[int]Process{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readProcess(pid); ok {
				all[pid] = p
			}
		}
	}
	return all
}

func readProcess(pid int) (Process, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, false
	}
	row, err := procfs.ParseStat(b)
	if err != nil {
		return Process{}, false
	}
	p := Process{PID: pid, PPID: row.PPID, State: string(row.State), Comm: string(row.Comm)}
	p.PidNS, _ = os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return p, true
}

// Descendants lists the processes below pid. Below another process than this one that
// is without the helper's second half (internal/leash), which lives as long as it.
func Descendants(pid int) []Process {
	all := Processes()
	if pid != os.Getpid() {
		maps.DeleteFunc(all, func(_ int, p Process) bool { return IsLeash(p.PID) })
	}
	var found []Process
	for _, p := range all {
		for at := p.PPID; at > 1 || at == pid; at = all[at].PPID {
			if at == pid {
				found = append(found, p)
				break
			}
		}
	}
	return found
}

// IsLeash says whether a process is a helper's second half.
func IsLeash(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && string(b) == "sandboxd\x00--leash\x00"
}

// InPidNS lists the processes of a pid namespace, named as in Process.PidNS. It is
// how a jail's survivors are found whoever their parent is now.
func InPidNS(ns string) []Process {
	return slices.DeleteFunc(slices.Collect(maps.Values(Processes())), func(p Process) bool { return p.PidNS != ns })
}

// NoNewChildren fails the test at its end if this process then has descendants,
// zombies included, that it does not have now.
func NoNewChildren(tb testing.TB) {
	tb.Helper()
	before := map[int]bool{}
	for _, p := range Descendants(os.Getpid()) {
		before[p.PID] = true
	}
	tb.Cleanup(func() {
		var left []Process
		for range 200 {
			left = slices.DeleteFunc(Descendants(os.Getpid()), func(p Process) bool { return before[p.PID] })
			if len(left) == 0 {
				return
			}
			Pause()
		}
		tb.Errorf("processes are left behind: %+v", left)
	})
}
