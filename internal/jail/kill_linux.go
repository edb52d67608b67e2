package jail

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// term sends TERM to the command and everything below it, not to the
// scaffolding: a TERM there takes the namespace down at once, and the command's
// own handler would never run.
func (s *supervision) term() {
	s.termWanted = false
	p := s.p
	if p.payloadFD >= 0 && exited(p.payloadFD) {
		return // it ended before the first signal
	}
	s.stopped = s.run.stopReason()
	root := p.init
	if root == 0 {
		root = p.pid
	}
	targets, err := descendants(s.table, root)
	if p.payloadFD >= 0 {
		_ = unix.PidfdSendSignal(p.payloadFD, unix.SIGTERM, nil, 0)
	}
	for _, pid := range targets {
		if pid != p.payload && pid != p.init {
			_ = signalPid(s.table, pid, unix.SIGTERM)
		}
	}
	if missed := err != nil || (p.jailed && !slices.Contains(targets, p.payload)); missed {
		s.termGroup()
	}
}

// termGroup is the fallback for a walk that cannot be trusted: a TERM not sent
// is worse than one sent too widely.
func (s *supervision) termGroup() {
	if s.p.payload > 1 && s.p.payloadFD >= 0 && !exited(s.p.payloadFD) {
		_ = unix.Kill(-s.p.payload, unix.SIGTERM) // stage 2 made it a group leader
		return
	}
	if !s.reaped {
		_ = unix.Kill(-s.p.pid, unix.SIGTERM)
	}
}

// killed is the ladder's last step.
func (s *supervision) killed() {
	if s.stopped == NotStopped && !(s.p.payloadFD >= 0 && exited(s.p.payloadFD)) {
		s.stopped = s.run.stopReason()
	}
	s.killAll()
}

// killAll takes the namespace's init first: a group kill misses an init that
// was made to call setsid, and a supervisor killed early orphans the jail.
func (s *supervision) killAll() {
	p := s.p
	for _, fd := range []int{p.initFD, p.payloadFD} {
		if fd >= 0 {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	}
	if !s.reaped {
		_ = unix.Kill(-p.pid, unix.SIGKILL)
	}
	if !p.jailed {
		s.sweep(KillBound)
	}
}

// sweep kills every remaining descendant of the helper, which is a child
// subreaper, until none is left. Degraded mode only: with a pid namespace the
// kernel does it. It says whether none is left.
func (s *supervision) sweep(limit time.Duration) bool {
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		left := s.strays()
		for _, pid := range left {
			_ = signalPid(s.table, pid, unix.SIGKILL)
			reapChild(pid)
		}
		if len(left) == 0 || time.Now().After(end) {
			return len(left) == 0
		}
	}
}

// strays lists what descends from the helper and is not a scaffolding of its own.
func (s *supervision) strays() []int {
	forks.Lock()
	defer forks.Unlock()
	kids, err := descendants(pruned{s.table, forks.known}, os.Getpid())
	if err != nil {
		return nil
	}
	return kids
}

// pruned hides the helper's own children with all that is below them: the next
// execution may already run.
type pruned struct {
	procTable
	hidden map[int]bool
}

func (t pruned) children(pid int) ([]int, error) {
	kids, err := t.procTable.children(pid)
	return slices.DeleteFunc(kids, func(k int) bool { return t.hidden[k] }), err
}

func (t pruned) all() ([]proc, error) {
	rows, err := t.procTable.all()
	return slices.DeleteFunc(rows, func(r proc) bool { return t.hidden[r.pid] }), err
}

// reapChild collects one orphan that came to the subreaper; other pids are left
// alone.
func reapChild(pid int) bool {
	var ws unix.WaitStatus
	got, err := unix.Wait4(pid, &ws, unix.WNOHANG, nil)
	return err == nil && got == pid
}

// tearDown ends whatever the command left running: its end is the run's end.
func (s *supervision) tearDown() {
	if s.p.initFD >= 0 {
		_ = unix.PidfdSendSignal(s.p.initFD, unix.SIGKILL, nil, 0)
	} else if s.p.jailed && !s.awaitScaffolding(KillBound) {
		_ = unix.Kill(-s.p.pid, unix.SIGKILL)
	}
	if !s.p.jailed && !s.sweep(KillBound) {
		s.stuck = true
	}
}

// gather waits until the scaffolding and the namespace's init are gone and
// reaped. Only then may a placeholder be removed: a daemon of the command could
// use its name until its namespace has ended.
func (s *supervision) gather() bool {
	p := s.p
	if !s.awaitScaffolding(time.Second) {
		_ = unix.Kill(-p.pid, unix.SIGKILL)
		s.awaitScaffolding(KillBound)
	}
	clean := s.reaped
	if p.initFD >= 0 {
		ev, err := pollOnce(p.initFD, unix.POLLIN, int(KillBound/time.Millisecond))
		clean = clean && err == nil && ev != 0
		reapChild(p.init)
	} else if p.jailed {
		clean = s.sweep(KillBound) && clean
	}
	for _, fd := range []int{p.initFD, p.payloadFD} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	return clean
}
