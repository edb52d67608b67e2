package jail

import (
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// over says whether the payload is known and has ended.
func (s *supervision) over() bool { return s.p.payloadFD >= 0 && exited(s.p.payloadFD) }

// term sends TERM to the command and everything below it, not to the
// scaffolding: a TERM there takes the namespace down at once, and the command's
// own handler would never run.
func (s *supervision) term() {
	p := s.p
	targets, listed, err := s.payloads()
	if p.payloadFD >= 0 {
		_ = unix.PidfdSendSignal(p.payloadFD, unix.SIGTERM, nil, 0)
	}
	for _, pid := range targets {
		if pid != p.payload || p.payloadFD < 0 {
			_ = signalPid(s.table, pid, unix.SIGTERM, listed)
		}
	}
	if err != nil || !slices.Contains(targets, p.payload) {
		s.termGroup()
	}
}

// payloads lists the command and what descends from it: everything below the
// namespace's init or, in degraded mode, below the helper, to which whoever forked
// twice comes back.
func (s *supervision) payloads() (all []int, l listing, err error) {
	p := s.p
	l = listing{began: ticks()}
	defer func() { l.ended = ticks() }()
	switch {
	case !p.jailed:
		l.root = os.Getpid()
		all, err = s.offspring()
		return all, l, err
	case p.init > 0:
		l.root = p.init
		all, err = descendants(s.table, p.init)
		return all, l, err
	}
	l.root = p.pid
	inits, err := s.table.children(p.pid)
	for _, init := range inits {
		some, serr := descendants(s.table, init)
		if all = append(all, some...); serr != nil {
			err = serr
		}
	}
	return all, l, err
}

// termGroup is the fallback for a walk that cannot be trusted: a TERM not sent
// is worse than one sent too widely.
func (s *supervision) termGroup() {
	if p := s.p; p.payload > 1 && p.payloadFD >= 0 {
		if !exited(p.payloadFD) { // it leads a group of its own: stage 2 saw to that
			_ = unix.Kill(-p.payload, unix.SIGTERM)
		}
		return
	}
	s.p.signalGroup(unix.SIGTERM)
}

// kill takes the cgroup first: that is one step against forks, whoever called setsid.
// Without one it takes the namespace's init: a group kill misses an init that was
// made to call setsid, and a supervisor killed early orphans the jail.
func (s *supervision) kill() {
	p := s.p
	s.group()
	for _, fd := range []int{p.initFD, p.payloadFD} {
		if fd >= 0 {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	}
	p.signalGroup(unix.SIGKILL)
	if p.initFD < 0 {
		s.sweep(sweepBound)
	}
}

// sweepBound is how long a KILL goes on where it has to find its targets one by one.
// What comes after it waits for KillBound, and for tearDown to do the same once more.
const sweepBound = time.Second

// sweep kills every remaining descendant of the helper, which is a child
// subreaper, until none is left. It is for degraded mode, and for a jail whose init
// is not known: with a pid namespace the kernel does it. It says whether none is left.
func (s *supervision) sweep(limit time.Duration) bool {
	for bound := newPatience(limit); ; time.Sleep(time.Millisecond) {
		late := bound.over() // before the look: the last word is what that shows
		listed := listing{root: os.Getpid(), began: ticks()}
		left, err := s.offspring()
		listed.ended = ticks()
		left = slices.DeleteFunc(left, func(pid int) bool { return pid == s.p.pid && !s.p.gone() }) // reap has that one
		for _, pid := range left {
			_ = signalPid(s.table, pid, unix.SIGKILL, listed)
			forks.reap(pid)
		}
		if err == nil && len(left) == 0 {
			return true
		}
		if late {
			forks.leave(s.table, left, s.p)
			return false
		}
	}
}

// offspring lists what descends from the helper and from no other scaffolding: the
// next execution may already run. What an earlier one left, because it could not be
// killed, is not this one's either.
func (s *supervision) offspring() ([]int, error) {
	forks.Lock()
	defer forks.Unlock()
	mine := s.p
	return descendants(pruned{s.table, &forks, mine}, os.Getpid())
}
