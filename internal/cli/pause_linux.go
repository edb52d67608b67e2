package cli

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"sandboxd/internal/procfs"
)

// stopSelf gives this very thread the signal, which stops the process before it
// returns; sent to the process, another thread would take it a moment later. SIGSTOP,
// since the runtime keeps its handler for SIGTSTP once it was asked for.
func stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP)
}

// orphaned says whether no process of the session outside this process group is an
// ancestor here, who would notice a stop: a shell with job control is one.
func orphaned() bool {
	group := unix.Getpgrp()
	session, err := unix.Getsid(0)
	for pid := unix.Getppid(); pid > 1 && err == nil; pid, _ = stat(pid) {
		if sid, err := unix.Getsid(pid); err != nil || sid != session {
			return true
		}
		if pgid, err := unix.Getpgid(pid); err == nil && pgid != group {
			return false
		}
	}
	return true
}

// child is a process by its number and its start, which together mean only one.
type child struct {
	pid   int
	start uint64 // in clock ticks since boot (proc_pid_stat(5))
}

// pauseRounds bounds the search for processes that were forked during the search.
const pauseRounds = 20

// signalJail sends a signal to everything below this process's children, which are
// helpers, and to those in more; it gives whom it has sent it to.
func signalJail(sig unix.Signal, more map[child]bool) map[child]bool {
	sent := map[child]bool{}
	for c := range more {
		c.signal(sig)
		sent[c] = true
	}
	for range pauseRounds {
		fresh := false
		for _, c := range jailed() {
			if !sent[c] && c.signal(sig) {
				sent[c], fresh = true, true
			}
		}
		if !fresh {
			break
		}
	}
	return sent
}

// jailed lists the children of helpers, and theirs.
func jailed() []child {
	parents, all := map[int][]child{}, []child{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, start := stat(pid); parent > 0 {
			parents[parent] = append(parents[parent], child{pid, start})
		}
	}
	next := []child{}
	for _, helper := range parents[os.Getpid()] {
		next = append(next, parents[helper.pid]...)
	}
	for len(next) > 0 {
		c := next[0]
		all, next = append(all, c), append(next[1:], parents[c.pid]...)
	}
	return all
}

// stat reads a process's parent and start; 0 for one that has gone.
func stat(pid int) (parent int, start uint64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	row, err := procfs.ParseStat(b)
	if err != nil {
		return 0, 0
	}
	return row.PPID, row.Start
}

// signal goes through a descriptor of the process, which a number that is used again
// cannot redirect.
func (c child) signal(sig unix.Signal) bool {
	fd, err := unix.PidfdOpen(c.pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if _, start := stat(c.pid); start != c.start {
		return false
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}
