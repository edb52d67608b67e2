package jail

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/ready"
	"sandboxd/internal/roots"
	"sandboxd/internal/stage2/spec"
)

// event is one thing that fd 4 said.
type event struct {
	message
	err error
}

// hands is what the ladder does to processes, and what it asks of them.
type hands interface {
	over() bool    // the command is known and has ended
	term()         // TERM to the command and its descendants
	kill()         // KILL to everything
	unheard() bool // fd 4 said something, or ended, that is still to be read
}

// supervision follows one spawned jail to the end of its command.
type supervision struct {
	run   *Run
	host  *Host
	p     *process
	table procTable
	hands hands  // the supervision itself, but for tests of the ladder
	group func() // KILL to everything in the execution's cgroup, if it has one

	events chan event
	gone   chan struct{} // closed: the payload's pidfd says that it has ended
	quit   chan struct{} // closed: nobody wants to hear more
	heard  chan struct{} // closed: fd 4 is no longer read
	exit   *ready.Waiter // for the payload's pidfd; nil before it is known
	looked chan struct{} // closed: the payload is no longer looked at; nil before it is

	harvested chan struct{} // closed: orphans are no longer reaped; nil with a pid namespace

	report     *spec.Report
	again      <-chan time.Time // look again whether the command may run
	allowed    bool             // stage 2 was told so
	executed   bool             // fd 4 ended after that: the command's image runs
	fail       *Error
	cause      error            // fd 4 ended or broke before a report
	state      *os.ProcessState // of the scaffolding, once reaped
	reaped     bool             // the scaffolding was reaped
	termWanted bool
	overdue    bool // the launch bound has passed once
	stopped    Reason
	stuck      bool // the command itself did not die
	lingers    bool // something that it left did not
	unknown    bool // how the command ended
	plan       plan.Plan
	reached    *roots.Reached
	masks      *masks
	onExec     func() // the command's image runs now
}

func newSupervision(r *Run, h *Host, p *process) *supervision {
	s := &supervision{run: r, host: h, p: p, table: realProc{}, group: func() {},
		events: make(chan event, 4), gone: make(chan struct{}),
		quit: make(chan struct{}), heard: make(chan struct{})}
	s.hands = s
	return s
}

// listen reads fd 4 until its end.
func (s *supervision) listen() {
	defer close(s.heard)
	defer s.p.report.Close()
	buf := letters.Get().(*[]byte)
	defer letters.Put(buf)
	for {
		m, err := receive(s.p.report, *buf)
		select {
		case s.events <- event{m, err}:
		case <-s.quit:
			m.close()
			return
		}
		if err != nil {
			return
		}
	}
}

// look waits for the end of the payload on its pidfd.
func (s *supervision) look() {
	defer close(s.looked)
	err := s.exit.Wait()
	select {
	case <-s.quit: // it was interrupted
		if err != nil {
			return
		}
	default:
	}
	close(s.gone)
}

// hush joins what listens, and gives back what it heard too late.
func (s *supervision) hush() {
	close(s.quit)
	_ = s.p.report.SetReadDeadline(time.Unix(1, 0))
	<-s.heard
	if s.exit != nil {
		s.exit.Interrupt()
		defer s.exit.Close()
	}
	for _, joined := range []chan struct{}{s.looked, s.harvested} {
		if joined != nil {
			<-joined
		}
	}
	for {
		select {
		case ev := <-s.events:
			ev.close()
		default:
			return
		}
	}
}

// watch waits for the command, launched or not, to be over. It is the only place
// that decides which signal is sent when.
func (s *supervision) watch() {
	launch := newAlarm(s.launchBound())
	stop := s.run.stop
	var gone <-chan struct{}
	var grace, bound *alarm
	var silent <-chan time.Time
	defer func() {
		for _, a := range []*alarm{launch, grace, bound} {
			a.stop()
		}
	}()
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
				s.climb()
			}
		case <-s.again:
			s.allow()
		case s.state = <-s.p.exit:
			s.reaped = true
			if !s.executed {
				silent = time.After(DrainBound) // fd 4 ends with the jail, unless a stray holds it
			}
			if s.executed && s.p.payloadFD >= 0 && !s.hands.over() {
				s.hands.kill() // the jail collapses with its supervisor
				bound = newAlarm(KillBound)
			}
		case <-gone:
			return
		case <-silent:
			switch {
			case s.executed:
			case s.hands.unheard(): // this helper was late, not fd 4
				silent = time.After(DrainBound / 10)
			default:
				s.cause, s.fail = errEndOfReport, spawnFailed("stage2: %v", errEndOfReport)
			}
		case <-launch.c():
			switch {
			case !launch.rang():
			case !s.executed && !s.overdue && s.hands.unheard(): // this helper got no processor
				s.overdue = true
				launch = newAlarm(s.launchBound())
			default:
				s.tooLate()
			}
		case <-stop:
			stop, s.termWanted = nil, true
			if s.executed {
				s.climb()
			}
			grace = newAlarm(Grace)
		case <-grace.c():
			if !grace.rang() {
				continue
			}
			if !s.hands.over() {
				s.stopped = s.run.stopReason()
			}
			s.hands.kill()
			bound = newAlarm(KillBound)
		case <-bound.c():
			if bound.rang() {
				s.stuck = !s.hands.over()
				return
			}
		}
	}
}

func (s *supervision) unheard() bool { return unheard(s.p.report, len(s.events)) }

// climb takes the ladder's first step. A command that ended before any signal was
// not stopped by anyone.
func (s *supervision) climb() {
	s.termWanted = false
	if s.hands.over() {
		return
	}
	s.stopped = s.run.stopReason()
	s.hands.term()
}

// tooLate ends a launch that takes for ever.
func (s *supervision) tooLate() {
	what := "stage 2 said nothing"
	switch {
	case s.executed:
		return
	case s.report != nil && !s.allowed:
		what = "bubblewrap's init did not settle"
	case s.report != nil:
		what = "stage 2 reported but did not execute the command"
	}
	s.fail = spawnFailed("bwrap: cannot start the jail: %s within %v (%s with %d mounts); see whether this host is overloaded, and whether the policy can name fewer paths",
		what, s.launchBound(), s.host.Facts.Bwrap.Path, len(s.plan.Ops))
}

// launchBound is how long building this jail may take.
func (s *supervision) launchBound() time.Duration {
	return LaunchBound + time.Duration(len(s.plan.Ops))*launchPerMount
}

func (s *supervision) onEvent(ev event) {
	switch {
	case errors.Is(ev.err, errEndOfReport) && s.allowed:
		s.executed = true
		if s.onExec != nil {
			s.onExec()
		}
	case errors.Is(ev.err, unix.ECONNRESET): // stage 2 died before it read the word (unix(7))
		s.cause, s.fail = errEndOfReport, spawnFailed("stage2: %v", errEndOfReport)
	case ev.err != nil:
		s.cause, s.fail = ev.err, spawnFailed("stage2: %v", ev.err)
	case ev.Failure != nil:
		s.fail = s.failure(ev.Failure)
	case ev.Report != nil && s.report == nil:
		s.report = ev.Report
		if s.identify(ev.message); s.fail == nil { // what nobody would follow does not run
			s.openMasks()
			s.allow()
			s.watchMasks(s.plan)
		}
		return // which keeps the descriptor
	}
	ev.close()
}

// settleEvery is how often init is looked at until it has settled: that takes it some
// ten microseconds, or a while on a loaded machine.
const settleEvery = 200 * time.Microsecond

// allow tells stage 2 to execute the command, once nothing of the jail can survive the
// helper: bubblewrap's init binds its life to its supervisor's after it forked stage 2
// and then waits, and a helper killed before that would leave them both behind. A
// stop that has come meanwhile finds a command that never ran.
func (s *supervision) allow() {
	s.again = nil
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
	p.payload, p.payloadFD = m.pid, m.pidfd
	if p.payloadFD < 0 { // before Linux 6.5
		if fd, err := unix.PidfdOpen(m.pid, 0); err == nil && s.below(m.pid) {
			p.payloadFD = fd
		} else if err == nil {
			unix.Close(fd)
		}
	}
	if p.payloadFD >= 0 {
		var err error
		if s.exit, err = ready.New(p.payloadFD, unix.EPOLLIN); err != nil {
			s.cause, s.fail = err, spawnFailed("%v", err)
		} else {
			s.looked = make(chan struct{})
			go s.look()
		}
	}
	if !p.jailed {
		return
	}
	if p.initFD < 0 { // a standby's is known
		p.findInit(s.table, m.pid)
	}
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
