package jail

import (
	"errors"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/proctrack"
	"sandboxd/internal/stage2/spec"
)

// supervision follows one spawned process to its end.
type supervision struct {
	course
	p       *process
	tracker *proctrack.Follower // nil: its own row could not be read

	events chan said
	quit   chan struct{}
	heard  chan struct{}
	text   chan string // what was printed before the command ran
}

func newSupervision(r *Run, p *process) *supervision {
	s := &supervision{p: p, events: make(chan said, 4), quit: make(chan struct{}), heard: make(chan struct{}), text: make(chan string, 1)}
	s.course = course{run: r, means: s, said: s.events, zombie: p.zombie}
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
		case s.events <- said{m, err}:
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

// allow has the kernel note the next execve(2), which stage 2 is then told to make.
func (s *supervision) allow() (told bool, err error) {
	if err := s.p.watchImage(); errors.Is(err, unix.ESRCH) { // fd 4 ends
		return false, nil
	} else if err != nil {
		return false, err
	}
	_, err = s.p.report.Write([]byte{spec.Go})
	return err == nil, nil // else stage 2 has died, and fd 4 ends
}

func (s *supervision) ran() bool     { return s.p.newImage() }
func (s *supervision) unheard() bool { return unheard(s.p.report, len(s.events)) }
func (s *supervision) term()         { s.signal(unix.SIGTERM) }
func (s *supervision) kill()         { s.signal(unix.SIGKILL) }

// signal reaches the group and everything that the tracker knows.
func (s *supervision) signal(sig unix.Signal) {
	s.p.signalGroup(sig)
	if s.tracker != nil {
		_, _ = s.tracker.Signal(int(sig), int32(s.p.pid)) // the group has the leader's number
	}
}

// gather kills what is left of the execution while its leader is not reaped, then
// reaps it. What forks twice between two samples escapes: the report says so.
func (s *supervision) gather() (ws syscall.WaitStatus, ok bool) {
	s.p.signalGroup(unix.SIGKILL)
	bound := KillBound
	if s.stuck { // it has had its time
		bound = 0
	}
	s.stuck = !Within(bound, s.p.zombie)
	clean := s.sweep()
	if s.tracker != nil {
		s.tracker.Stop()
	}
	close(s.quit)
	_ = s.p.report.SetReadDeadline(time.Unix(1, 0))
	<-s.heard
	s.p.forgetImage()
	if s.stuck {
		s.run.leftover = errors.Join(s.run.leftover, errUnended)
		go s.p.reapLater()
		return 0, false
	}
	if !clean {
		s.run.leftover = errors.Join(s.run.leftover, errUnended)
	}
	return s.p.reap()
}

// sweep kills descendants until none lives.
func (s *supervision) sweep() bool {
	if s.tracker == nil {
		return true
	}
	for bound := newPatience(KillBound); ; time.Sleep(time.Millisecond) {
		late := bound.over() // before the look: the last word is what that shows
		_, err := s.tracker.Signal(int(unix.SIGKILL), 0)
		n, serr := s.tracker.Sample()
		if err == nil && serr == nil && n == 0 {
			return true
		}
		if late {
			return false
		}
	}
}

// printed is what came on the messages' pipe.
func (s *supervision) printed() string {
	_ = s.p.messages.SetReadDeadline(time.Now().Add(DrainBound))
	return <-s.text
}
