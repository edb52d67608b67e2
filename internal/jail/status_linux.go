package jail

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// status is the command's own end: from its pidfd where the kernel tells
// (PIDFD_GET_INFO with the exit mask, Linux 6.15), else from what bubblewrap
// relays: 128+n for a signal, which then cannot be told from such an exit code.
func (s *supervision) status() (code, signal int) {
	if ws, ok := s.exitInfo(KillBound); ok {
		return waitStatus(ws)
	}
	s.awaitScaffolding(KillBound)
	if s.state == nil {
		return 128 + int(unix.SIGKILL), int(unix.SIGKILL)
	}
	ws, ok := s.state.Sys().(syscall.WaitStatus) // what package os gives, not unix's
	if !ok {
		return 1, 0
	}
	return waitStatus(unix.WaitStatus(ws))
}

func waitStatus(ws unix.WaitStatus) (code, signal int) {
	if ws.Signaled() {
		return 128 + int(ws.Signal()), int(ws.Signal())
	}
	return ws.ExitStatus(), 0
}

// awaitScaffolding waits until the scaffolding was reaped, at most d.
func (s *supervision) awaitScaffolding(d time.Duration) bool {
	if s.reaped {
		return true
	}
	select {
	case s.state = <-s.p.exit:
		s.reaped = true
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case s.state = <-s.p.exit:
		s.reaped = true
	case <-timer.C:
	}
	return s.reaped
}

// exitInfo reads the exit status off the payload's pidfd. It is there once the
// process was reaped, which the pidfd shows as POLLHUP (Linux 6.9); a kernel that
// never shows it is known by an ioctl that it does not have (before 6.13).
func (s *supervision) exitInfo(limit time.Duration) (unix.WaitStatus, bool) {
	fd := s.p.payloadFD
	if fd < 0 || s.host.noExitInfo.Load() {
		return 0, false
	}
	if err := unix.IoctlPidfdInfo(fd, &unix.PidfdInfo{}); err == unix.ENOTTY {
		s.host.noExitInfo.Store(true)
		return 0, false
	}
	last := false // the scaffolding has gone: nobody else is to reap the payload
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if ev, err := pollOnce(fd, 0, 50); err != nil {
			return 0, false
		} else if ev&unix.POLLHUP != 0 {
			info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
			if unix.IoctlPidfdInfo(fd, &info) == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0 {
				return unix.WaitStatus(info.Exit_code), true
			}
			s.host.noExitInfo.Store(true) // 6.13 and 6.14
			return 0, false
		}
		if last {
			return 0, false
		}
		last = s.awaitScaffolding(0)
	}
	return 0, false
}
