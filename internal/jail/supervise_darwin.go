package jail

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/proctrack"
	"sandboxd/internal/stage2/spec"
)

// event is one thing that fd 4 said.
type event struct {
	spec.Message
	err error
}

// supervision follows one spawned process to its end.
type supervision struct {
	run     *Run
	p       *process
	tracker *proctrack.Follower // nil: its own row could not be read

	events chan event
	quit   chan struct{}
	heard  chan struct{}
	text   chan string // what was printed before the command ran

	report   *spec.Report
	executed bool
	fail     *Error
	cause    error // fd 4 ended or broke before a report
	over     bool  // the process has ended, not reaped
	stuck    bool
	stopped  Reason
	onReport func()
}

func newSupervision(r *Run, p *process) *supervision {
	s := &supervision{run: r, p: p, events: make(chan event, 4), quit: make(chan struct{}), heard: make(chan struct{}), text: make(chan string, 1)}
	table := proctrack.System{}
	if root, err := table.Look(int32(p.pid)); err == nil {
		s.tracker = proctrack.Follow(table, root, func(pid int32, sig int) error { return unix.Kill(int(pid), unix.Signal(sig)) })
	}
	go s.listen()
	go s.collect()
	return s
}

func (s *supervision) listen() {
	defer close(s.heard)
	defer s.p.report.Close()
	for {
		m, err := receive(s.p.report)
		select {
		case s.events <- event{m, err}:
		case <-s.quit:
			return
		}
		if err != nil {
			return
		}
	}
}

// collect keeps the first 4 KiB of what sandbox-exec and stage 2 print.
func (s *supervision) collect() {
	defer s.p.messages.Close()
	b, _ := io.ReadAll(io.LimitReader(s.p.messages, 4<<10))
	s.text <- string(b)
	_, _ = io.Copy(io.Discard, s.p.messages)
}

// watch waits for the command, launched or not, to be over.
func (s *supervision) watch() {
	launch := time.NewTimer(LaunchBound)
	defer launch.Stop()
	stop, zombie := s.run.stop, s.p.zombie
	var grace, bound, silent <-chan time.Time
	for s.fail == nil && (!s.over || !s.executed) {
		select {
		case ev := <-s.events:
			s.onEvent(ev)
		case <-zombie:
			s.over, zombie = true, nil
			silent = time.After(DrainBound) // a stray may hold fd 4
		case <-silent:
			switch {
			case unheard(s.p.report, len(s.events)): // this helper was late
				silent = time.After(DrainBound / 10)
			case s.report != nil:
				s.executed = true
			default:
				s.cause, s.fail = errEndOfReport, spawnFailed("stage2: %v", errEndOfReport)
			}
		case <-launch.C:
			if !s.executed {
				s.fail = spawnFailed("cannot start the jail: stage 2 said nothing within %v; see whether this host is overloaded", LaunchBound)
			}
		case <-stop:
			stop = nil
			s.signal(unix.SIGTERM)
			grace = time.After(Grace)
		case <-grace:
			s.signal(unix.SIGKILL)
			bound = time.After(KillBound)
		case <-bound:
			s.stuck = true
			return
		}
	}
}

// signal reaches the group and everything that the tracker knows. A command that
// ended before any signal was not stopped by anyone.
func (s *supervision) signal(sig unix.Signal) {
	select {
	case <-s.p.zombie:
		return
	default:
	}
	s.stopped = s.run.stopReason()
	s.p.signalGroup(sig)
	if s.tracker != nil {
		_, _ = s.tracker.Signal(int(sig), int32(s.p.pid)) // the group has the leader's number
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
		if s.onReport != nil {
			s.onReport()
		}
	}
}

// failure puts a step that failed inside the jail into the caller's words.
func (s *supervision) failure(f *spec.Failure) *Error {
	if f.Step == spec.StepSeatbelt {
		return spawnFailed("seatbelt: %s", stepText(f))
	}
	return stepFailed(f)
}

// gather kills what is left of the execution while its leader is not reaped, then
// reaps it. What forks twice between two samples escapes: the report says so.
func (s *supervision) gather() (ws syscall.WaitStatus, ok bool) {
	s.p.signalGroup(unix.SIGKILL)
	select {
	case <-s.p.zombie:
	case <-time.After(KillBound):
		s.stuck = true
	}
	clean := s.sweep()
	if s.tracker != nil {
		s.tracker.Stop()
	}
	close(s.quit)
	_ = s.p.report.SetReadDeadline(time.Unix(1, 0))
	<-s.heard
	if s.stuck {
		go s.p.reap() // whenever it ends
		return 0, false
	}
	if !clean {
		s.run.leftover = fmt.Errorf("a process of the execution could not be ended")
	}
	return s.p.reap()
}

// sweep kills descendants until none lives.
func (s *supervision) sweep() bool {
	if s.tracker == nil {
		return true
	}
	for end := time.Now().Add(KillBound); ; time.Sleep(time.Millisecond) {
		_, err := s.tracker.Signal(int(unix.SIGKILL), 0)
		n, serr := s.tracker.Sample()
		if err == nil && serr == nil && n == 0 {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// printed is what came on the messages' pipe.
func (s *supervision) printed() string {
	_ = s.p.messages.SetReadDeadline(time.Now().Add(DrainBound))
	return <-s.text
}
