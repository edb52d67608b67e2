package proctrack

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// System is the kernel's process table, by sysctl(3) KERN_PROC.
type System struct{}

// stateZombie is SZOMB of <sys/proc.h>.
const stateZombie = 5

// Snapshot reads all processes that this user may see.
func (System) Snapshot(buf Snapshot) (Snapshot, error) {
	rows, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return buf, fmt.Errorf("cannot read the process table: %w", err)
	}
	for i := range rows {
		buf = append(buf, procOf(&rows[i]))
	}
	return buf, nil
}

// Look reads one row.
func (System) Look(pid int32) (Proc, error) {
	row, err := unix.SysctlKinfoProc("kern.proc.pid", int(pid))
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) { // an answer without a row
		return Proc{}, ErrGone
	}
	if err != nil {
		return Proc{}, fmt.Errorf("cannot read the row of process %d: %w", pid, err)
	}
	if row.Proc.P_pid != pid {
		return Proc{}, ErrGone
	}
	return procOf(row), nil
}

// procOf takes the time of birth in microseconds since the epoch.
func procOf(k *unix.KinfoProc) Proc {
	start := k.Proc.P_starttime
	return Proc{PID: k.Proc.P_pid, PPID: k.Eproc.Ppid, PGID: k.Eproc.Pgid, Zombie: k.Proc.P_stat == stateZombie,
		Born: start.Sec*1_000_000 + int64(start.Usec)}
}
