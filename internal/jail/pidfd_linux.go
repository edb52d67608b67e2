package jail

import (
	"time"

	"golang.org/x/sys/unix"
)

// listing is a walk through what is below a process, which takes its time: meanwhile a
// number can become another's.
type listing struct {
	root         int
	began, ended uint64 // in ticks
}

// signalPid sends sig through a pidfd that is known to be of the process that the
// table showed when it was listed: its start time is the same after the pidfd was
// opened, and it is older than the listing. One that began during that has to be where
// those are that were listed.
func signalPid(t procTable, pid int, sig unix.Signal, l listing) error {
	before, err := t.stat(pid)
	if err != nil {
		return err
	}
	if before.start > l.ended {
		return unix.ESRCH
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	after, err := t.stat(pid)
	if err != nil || after.start != before.start {
		return unix.ESRCH
	}
	if after.start >= l.began && !descends(t, pid, l.root) {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// mostLinks is how far up descends looks: who made a longer chain within one listing is
// older than the next.
const mostLinks = 64

// descends says whether a process is below root, by its parent links.
func descends(t procTable, pid, root int) bool {
	for range 3 { // a parent that ends is replaced in its children's rows
		at, err := pid, error(nil)
		for range mostLinks {
			var row proc
			if row, err = t.stat(at); err != nil {
				break
			}
			if at = row.ppid; at == root {
				return true
			}
			if at <= 1 {
				return false
			}
		}
		if err == nil {
			return false
		}
	}
	return false
}

// ticks is the time since boot as the table gives it, in hundredths of a second
// (USER_HZ of proc_pid_stat(5), whatever the kernel's own clock).
func ticks() uint64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return ^uint64(0)
	}
	return uint64(ts.Nano() / 1e7)
}

// exited asks a pidfd whether its process has ended.
func exited(pidfd int) bool {
	n, err := pollOnce(pidfd, unix.POLLIN, 0)
	return err == nil && n&(unix.POLLIN|unix.POLLHUP) != 0
}

// ends waits until a pidfd's process has ended.
func ends(pidfd int, limit time.Duration) bool {
	for bound := newPatience(limit); ; {
		late := bound.over()
		if ev, err := pollOnce(pidfd, unix.POLLIN, int(awakeSlice/time.Millisecond)); err != nil || ev != 0 || late {
			return err == nil && ev != 0
		}
	}
}
