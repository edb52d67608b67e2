package jail

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const harvestEvery = 200 * time.Millisecond

// harvest reaps what falls to the helper while a command without a pid namespace
// runs: a long one that forks twice would use up this machine's pids.
func (s *supervision) harvest() {
	defer close(s.harvested)
	tick := time.NewTicker(harvestEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
		}
		s.reapOrphans()
	}
}

func (s *supervision) reapOrphans() {
	forks.Lock()
	defer forks.Unlock()
	kids, err := s.table.children(os.Getpid())
	if err != nil { // a kernel without the file: whoever is not a child is left alone
		rows, _ := s.table.all()
		for _, row := range rows {
			if row.ppid == os.Getpid() {
				kids = append(kids, row.pid)
			}
		}
	}
	for _, pid := range kids {
		if !forks.owns(pid) {
			reapChild(pid)
		}
	}
}

// reapChild collects one orphan that came to the subreaper; other pids are left
// alone.
func reapChild(pid int) bool {
	var ws unix.WaitStatus
	got, err := unix.Wait4(pid, &ws, unix.WNOHANG, nil)
	return err == nil && got == pid
}

// reapPidfd collects what a pidfd is of, whatever has its number by now.
func reapPidfd(fd int) bool {
	var si unix.Siginfo
	err := unix.Waitid(unix.P_PIDFD, fd, &si, unix.WEXITED|unix.WNOHANG, nil)
	return err == nil && si.Signo != 0
}
