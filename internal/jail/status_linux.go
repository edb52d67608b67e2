package jail

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// holdBound is how long the command's end may be kept from whoever reaps it before
// that is taken for an attack.
const holdBound = 100 * time.Millisecond

// status is the command's own end: from its pidfd where the kernel tells
// (PIDFD_GET_INFO with the exit mask, Linux 6.15), else from what bubblewrap
// relays: 128+n for a signal, which then cannot be told from such an exit code.
// It is not known where nothing reaps the command or its scaffolding.
func (s *supervision) status() (code, signal int, known bool) {
	if s.p.payloadFD >= 0 && !s.collected(holdBound) {
		s.release(KillBound)
	}
	if ws, ok := s.exitInfo(); ok {
		code, signal = waitStatus(ws)
		return code, signal, true
	}
	s.awaitScaffolding(KillBound)
	if s.state == nil {
		return 128 + int(unix.SIGKILL), 0, false
	}
	ws, ok := s.state.Sys().(syscall.WaitStatus) // what package os gives, not unix's
	if !ok {
		return 128 + int(unix.SIGKILL), 0, false
	}
	code, signal = waitStatus(unix.WaitStatus(ws))
	return code, signal, true
}

// collected says whether the command, which has ended, was reaped: its pidfd shows
// that as POLLHUP, or the scaffolding has gone, which waits for it.
func (s *supervision) collected(limit time.Duration) bool {
	if !s.tells() {
		return s.awaitScaffolding(limit)
	}
	for bound := newPatience(limit); ; {
		late := bound.over()
		if ev, err := pollOnce(s.p.payloadFD, 0, 5); err != nil || ev&unix.POLLHUP != 0 || s.awaitScaffolding(0) {
			return true
		}
		if late {
			return false
		}
	}
}

// tells says whether this kernel's pidfds may give exit statuses. Those that do show
// POLLHUP too (Linux 6.9).
func (s *supervision) tells() bool {
	if s.p.payloadFD < 0 || s.host.noExitInfo.Load() {
		return false
	}
	if unix.IoctlPidfdInfo(s.p.payloadFD, &unix.PidfdInfo{}) == unix.ENOTTY { // before 6.13
		s.host.noExitInfo.Store(true)
		return false
	}
	return true
}

// release sees to it that the command is reaped. Whoever traces it is told of its end
// before its parent is and may keep it (ptrace(2)), so what it left is killed; and a
// scaffolding that somebody stopped goes on.
func (s *supervision) release(limit time.Duration) {
	if s.p.initFD >= 0 {
		_ = unix.PidfdSendSignal(s.p.initFD, unix.SIGCONT, nil, 0)
	}
	if s.p.jailed {
		s.p.signalGroup(unix.SIGCONT)
	}
	for bound := newPatience(limit); !s.collected(0) && !bound.over(); {
		pids, listed, _ := s.payloads() // an error is met again in the next round
		for _, pid := range pids {
			if pid != s.p.payload {
				_ = signalPid(s.table, pid, unix.SIGKILL, listed)
			}
		}
	}
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
	bound := newAlarm(d)
	defer bound.stop()
	for {
		select {
		case s.state = <-s.p.exit:
			s.reaped = true
			return true
		case <-bound.c():
			switch {
			case !bound.rang():
			case s.p.zombie(): // only this helper was late
				s.state = <-s.p.exit
				s.reaped = true
				return true
			default:
				return false
			}
		}
	}
}

// exitInfo reads the exit status off the payload's pidfd, once it was reaped.
func (s *supervision) exitInfo() (unix.WaitStatus, bool) {
	if !s.tells() {
		return 0, false
	}
	// Not at once where only the scaffolding is known to have gone.
	if ev, err := pollOnce(s.p.payloadFD, 0, 50); err != nil || ev&unix.POLLHUP == 0 {
		return 0, false
	}
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if unix.IoctlPidfdInfo(s.p.payloadFD, &info) == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0 {
		return unix.WaitStatus(info.Exit_code), true
	}
	s.host.noExitInfo.Store(true) // 6.13 and 6.14
	return 0, false
}
