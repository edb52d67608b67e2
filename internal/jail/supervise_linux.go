package jail

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
	"sandboxd/internal/stage2/spec"
)

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
	looked chan struct{} // closed: the payload is no longer looked at; nil before it is

	harvested chan struct{} // closed: orphans are no longer reaped; nil with a pid namespace

	report     *spec.Report
	built      time.Time        // when that came
	again      <-chan time.Time // look again whether the command may run
	begun      bool             // who the payload is was looked at
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
	case s.begun:
		what = "stage 2 began but did not report"
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
	case errors.Is(ev.err, errEndOfReport) && s.allowed && s.report != nil:
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
	case ev.Begun != nil && !s.begun:
		s.begin(ev.message)
		return // which keeps the descriptor
	case ev.Report != nil && s.report == nil:
		s.report, s.built = ev.Report, time.Now()
		if !s.begun {
			s.begin(ev.message)
		} else {
			ev.close()
		}
		if s.fail == nil {
			s.watchMasks(s.plan)
		}
		return // the same
	}
	ev.close()
}

// refused says whether the small stage 2 was not executed here: it never began.
func (s *supervision) refused(failed *Error) bool {
	return failed != nil && !s.begun && s.report == nil && !s.p.began && s.host.self.refused(s.p, s.state, failed.Msg)
}

// begin takes note of who sent a message, and lets it go on when that may be: what nobody
// would follow does not run.
func (s *supervision) begin(m message) {
	s.begun = true
	s.host.self.works.Store(true)
	if s.identify(m); s.fail == nil {
		s.openMasks()
		s.allow()
	}
}
