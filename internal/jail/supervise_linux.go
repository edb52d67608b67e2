package jail

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/stage2/spec"
)

// event is one thing that fd 4 said.
type event struct {
	message
	err error
}

// supervision follows one spawned jail to the end of its command.
type supervision struct {
	run   *Run
	host  *Host
	p     *process
	table procTable

	events chan event
	gone   chan struct{} // the payload's pidfd says that it has ended

	report     *spec.Report
	executed   bool // fd 4 ended after the report: the command's image runs
	fail       *Error
	cause      error            // fd 4 ended or broke before a report
	state      *os.ProcessState // of the scaffolding, once reaped
	reaped     bool             // the scaffolding was reaped
	termWanted bool
	stopped    Reason
	stuck      bool
	plan       plan.Plan
	masks      *masks
}

func newSupervision(r *Run, h *Host, p *process) *supervision {
	return &supervision{run: r, host: h, p: p, table: realProc{},
		events: make(chan event, 4), gone: make(chan struct{})}
}

// listen reads fd 4 until its end.
func (s *supervision) listen() {
	defer s.p.report.Close()
	buf := make([]byte, 256<<10)
	for {
		m, err := receive(s.p.report, buf)
		s.events <- event{m, err}
		if err != nil {
			return
		}
	}
}

// watch waits for the command, launched or not, to be over. It is the only place
// that decides which signal is sent when.
func (s *supervision) watch() {
	launch := time.NewTimer(LaunchBound)
	defer launch.Stop()
	stop := s.run.stop
	var gone <-chan struct{}
	var grace, bound <-chan time.Time
	for s.fail == nil {
		if s.executed {
			gone = s.gone
			if s.reaped && s.p.payloadFD < 0 {
				return
			}
		}
		select {
		case ev := <-s.events:
			s.onEvent(ev)
			if s.executed && s.termWanted {
				s.term()
			}
		case s.state = <-s.p.exit:
			s.reaped = true
			if s.executed && s.p.payloadFD >= 0 && !exited(s.p.payloadFD) {
				s.killAll() // the jail collapses with its supervisor
				bound = time.After(KillBound)
			}
		case <-gone:
			return
		case <-launch.C:
			if !s.executed {
				s.fail = spawnFailed("cannot start the jail: stage 2 said nothing for %v; see whether this host is overloaded", LaunchBound)
			}
		case <-stop:
			stop, s.termWanted = nil, true
			if s.executed {
				s.term()
			}
			grace = time.After(Grace)
		case <-grace:
			s.killed()
			bound = time.After(KillBound)
		case <-bound:
			s.stuck = true
			return
		}
	}
}

func (s *supervision) onEvent(ev event) {
	switch {
	case errors.Is(ev.err, errEndOfReport) && s.report != nil:
		s.executed = true
	case ev.err != nil:
		s.cause, s.fail = ev.err, spawnFailed("stage2: %v", ev.err)
	case ev.Failure != nil:
		s.fail = s.failure(ev.Failure)
	case ev.Report != nil && s.report == nil:
		s.report = ev.Report
		s.identify(ev.message)
	}
}

// identify learns who the payload and the namespace's init are.
func (s *supervision) identify(m message) {
	p := s.p
	p.payload, p.payloadFD = m.pid, m.pidfd
	if p.payloadFD < 0 { // before Linux 6.5
		if fd, err := unix.PidfdOpen(m.pid, 0); err == nil && s.below(m.pid) {
			p.payloadFD = fd
		} else if err == nil {
			unix.Close(fd)
		}
	}
	if p.payloadFD >= 0 {
		go func() {
			_, _ = pollOnce(p.payloadFD, unix.POLLIN, -1)
			close(s.gone)
		}()
	}
	if !p.jailed {
		return
	}
	// The supervisor's one child is the namespace's init. It is not reaped
	// before the supervisor is, so the number cannot have been reused.
	kids, err := s.table.children(p.pid)
	if err != nil || len(kids) != 1 {
		row, err := s.table.stat(m.pid)
		if err != nil || row.ppid <= 1 || row.ppid == p.pid || row.ppid == os.Getpid() {
			return // already gone; cleanup reaps what came to us
		}
		kids = []int{row.ppid}
	}
	if fd, err := unix.PidfdOpen(kids[0], 0); err == nil {
		p.init, p.initFD = kids[0], fd
		s.watchMasks(s.plan)
	}
}

// below says whether pid descends from the scaffolding.
func (s *supervision) below(pid int) bool {
	for range 4 {
		if pid == s.p.pid {
			return true
		}
		row, err := s.table.stat(pid)
		if err != nil || row.ppid <= 1 {
			return false
		}
		pid = row.ppid
	}
	return false
}

// status is the command's own end: from its pidfd where the kernel tells
// (PIDFD_GET_INFO with the exit mask, Linux 6.15), else from what bubblewrap
// relays: 128+n for a signal, which then cannot be told from such an exit code.
func (s *supervision) status() (code, signal int) {
	if ws, ok := s.host.exitInfo(s.p.payloadFD); ok {
		return waitStatus(ws)
	}
	s.awaitScaffolding(KillBound)
	if s.state == nil {
		return 128 + int(unix.SIGKILL), int(unix.SIGKILL)
	}
	ws, ok := s.state.Sys().(unix.WaitStatus)
	if !ok {
		return 1, 0
	}
	return waitStatus(ws)
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
	case <-time.After(d):
	}
	return s.reaped
}

// exitInfo reads the exit status off a pidfd. It is there once the process was
// reaped, which the pidfd shows as POLLHUP.
func (h *Host) exitInfo(pidfd int) (unix.WaitStatus, bool) {
	if pidfd < 0 || h.noExitInfo.Load() {
		return 0, false
	}
	if ev, err := pollOnce(pidfd, 0, 200); err == nil && ev&unix.POLLHUP != 0 {
		info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
		if unix.IoctlPidfdInfo(pidfd, &info) == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0 {
			return unix.WaitStatus(info.Exit_code), true
		}
		h.noExitInfo.Store(true)
	}
	return 0, false
}
