package jail

import (
	"time"

	"golang.org/x/sys/unix"
)

// signalPid sends sig through a pidfd that is known to be of the process that the
// table showed when it was listed: it is older than that, and its start time is the
// same after the pidfd was opened.
func signalPid(t procTable, pid int, sig unix.Signal, listed uint64) error {
	before, err := t.stat(pid)
	if err != nil {
		return err
	}
	if before.start > listed {
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
	return unix.PidfdSendSignal(fd, sig, nil, 0)
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
