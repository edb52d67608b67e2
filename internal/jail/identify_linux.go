package jail

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/ready"
	"sandboxd/internal/stage2/spec"
)

// settleEvery is how often init is looked at until it has settled: that takes it some
// ten microseconds, or a while on a loaded machine.
const settleEvery = 200 * time.Microsecond

// allow tells stage 2 to execute the command, once nothing of the jail can survive the
// helper: bubblewrap's init binds its life to its supervisor's after it forked stage 2
// and then waits, and a helper killed before that would leave them both behind. A
// stop that has come meanwhile finds a command that never ran.
func (s *supervision) allow() {
	s.again = nil
	if s.p.told { // a stop that came since finds a command that runs
		s.allowed = true
		return
	}
	if s.termWanted {
		s.stopped, s.fail = s.run.stopReason(), spawnFailed("stopped before the command ran")
		return
	}
	if s.p.init > 0 && !s.p.settled {
		if row, err := s.table.stat(s.p.init); err == nil && !s.table.waits(row) && !exited(s.p.initFD) {
			s.again = time.After(settleEvery)
			return
		}
	}
	_, err := s.p.report.Write([]byte{spec.Go})
	s.allowed = err == nil // else stage 2 has died, and fd 4 ends
}

// identify learns who the payload and the namespace's init are.
func (s *supervision) identify(m message) {
	p := s.p
	if p.waiter != nil { // a standby's is known
		m.close()
	} else if err := p.follow(s.table, m); err != nil {
		s.cause, s.fail = err, spawnFailed("%v", err)
	}
	if p.waiter != nil {
		s.looked = make(chan struct{})
		go s.look()
	}
	if p.jailed && p.initFD < 0 { // the same
		p.findInit(s.table, m.pid)
	}
}

// follow takes who sent a message for the payload, and prepares to wait for its end.
func (p *process) follow(table procTable, m message) (err error) {
	p.payload, p.payloadFD = m.pid, m.pidfd
	if p.payloadFD < 0 { // before Linux 6.5
		if fd, err := unix.PidfdOpen(m.pid, 0); err == nil && p.above(table, m.pid) {
			p.payloadFD = fd
		} else if err == nil {
			unix.Close(fd)
		}
	}
	if p.payloadFD >= 0 {
		p.waiter, err = ready.New(p.payloadFD, unix.EPOLLIN)
	}
	return err
}

// findInit learns who the namespace's init is: the supervisor's one child, and the
// payload's parent. It is not reaped before the supervisor is, so the number cannot
// have been reused.
func (p *process) findInit(table procTable, payload int) {
	init := 0
	if row, err := table.stat(payload); err == nil && row.ppid > 1 && row.ppid != p.pid && row.ppid != os.Getpid() {
		init = row.ppid
	}
	row, err := table.stat(init)
	if init == 0 || err != nil || row.ppid != p.pid {
		kids, err := table.children(p.pid)
		switch {
		case err == nil && len(kids) == 1:
			init, row = kids[0], proc{}
		case init == 0:
			return // already gone; cleanup reaps what came to us
		}
	}
	if fd, err := unix.PidfdOpen(init, 0); err == nil {
		p.init, p.initFD = init, fd
		p.settled = row.ppid == p.pid && table.waits(row) // as in allow
	}
}

// above says whether pid descends from the scaffolding.
func (p *process) above(table procTable, pid int) bool {
	for range 4 {
		if pid == p.pid {
			return true
		}
		row, err := table.stat(pid)
		if err != nil || row.ppid <= 1 {
			return false
		}
		pid = row.ppid
	}
	return false
}
