package jail

import (
	"time"

	"golang.org/x/sys/unix"
)

// alone says whether init has nobody left in its namespace but itself, and so nobody
// ever again: whoever lives there descends from a child of it. The kernel gives the
// first child in one step; the command may stay in the list until it is reaped.
//
// As long as it is there, a zombie, the list goes on behind it: the kernel finds the
// next child by the one before, and skips one only where that has gone meanwhile.
func (s *supervision) alone() bool {
	for range 50 {
		kids, err := s.table.children(s.p.init)
		if err != nil || len(kids) > 1 || len(kids) == 1 && (kids[0] != s.p.payload || !s.over()) {
			return false
		}
		if len(kids) == 0 {
			return true
		}
		if row, err := s.table.stat(s.p.payload); err == nil && row.state == 'Z' && row.ppid == s.p.init {
			return true
		}
		time.Sleep(20 * time.Microsecond)
	}
	return false
}

// tearDown ends whatever the command left running: its end is the run's end. What it
// left in the background is gone then, and not only signalled: init takes it along when
// it comes to its own end, and until then it could change what is looked at next. There
// may be nothing: the command is known to have been alone.
func (s *supervision) tearDown(alone bool) {
	bound := KillBound
	if s.stuck { // it has had its time
		bound = 0
	}
	if s.p.initFD >= 0 {
		alone = alone || s.alone()
		_ = unix.PidfdSendSignal(s.p.initFD, unix.SIGKILL, nil, 0)
		if !alone {
			s.lingers = !ends(s.p.initFD, bound)
		}
		return
	}
	s.group()
	if s.p.jailed && !s.awaitScaffolding(KillBound) {
		s.p.signalGroup(unix.SIGKILL)
	}
	s.lingers = !s.sweep(bound)
}

// gather waits until the scaffolding and the namespace's init are gone and
// reaped. Only then may a placeholder be removed: a daemon of the command could
// use its name until its namespace has ended.
func (s *supervision) gather() bool {
	p := s.p
	if !s.awaitScaffolding(time.Second) {
		p.signalGroup(unix.SIGKILL)
		s.awaitScaffolding(KillBound)
	}
	clean := s.reaped && !s.lingers
	if p.initFD >= 0 {
		bound := KillBound
		if !clean { // it has had that
			bound = harvestEvery
		}
		gone := ends(p.initFD, bound)
		clean = clean && gone
		if !reapPidfd(p.initFD) {
			forks.leaveLater(s.table, p)
		}
	} else if p.jailed {
		bound := KillBound
		if s.lingers { // the same
			bound = harvestEvery
		}
		clean = s.sweep(bound) && clean
	}
	if p.waiter != nil { // of a jail that nobody listened to
		_ = p.waiter.Close()
	}
	for _, fd := range []int{p.initFD, p.payloadFD, p.table} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if s.masks != nil && s.masks.watch != nil {
		s.masks.watch.Close()
	}
	forks.bury(s.table)
	return clean
}
