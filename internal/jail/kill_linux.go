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
	targets, err := s.payloads()
	listed := ticks()
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
func (s *supervision) payloads() ([]int, error) {
	p := s.p
	switch {
	case !p.jailed:
		return s.offspring()
	case p.init > 0:
		return descendants(s.table, p.init)
	}
	inits, err := s.table.children(p.pid)
	var all []int
	for _, init := range inits {
		some, serr := descendants(s.table, init)
		if all = append(all, some...); serr != nil {
			err = serr
		}
	}
	return all, err
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
		left, err := s.offspring()
		left = slices.DeleteFunc(left, func(pid int) bool { return pid == s.p.pid && !s.p.gone() }) // reap has that one
		listed := ticks()
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

// leave notes what did not die. The execution that it is of still sees it: there it has
// to die, and to be told of, as long as there is time, and so has what is below it.
func (f *children) leave(t procTable, pids []int, of *process) {
	f.Lock()
	defer f.Unlock()
	for _, pid := range pids {
		if row, err := t.stat(pid); err == nil {
			f.left[pid] = leftover{row.start, of}
		}
	}
}

// leaveLater does the same for the namespace's init, and waits for no fork that hangs.
func (f *children) leaveLater(t procTable, of *process) {
	row, err := t.stat(of.init)
	if err != nil || unix.PidfdSendSignal(of.initFD, 0, nil, 0) == unix.ESRCH { // it was another's row
		return
	}
	note := func() {
		defer f.Unlock()
		f.left[of.init] = leftover{row.start, of}
	}
	if f.TryLock() {
		note()
		return
	}
	go func() { f.Lock(); note() }()
}

// bury reaps what has died after all, and forgets what is gone. A fork that hangs (its
// program is on a file system that does) keeps the lock: the next one to be asked does it.
func (f *children) bury(t procTable) {
	if !f.TryLock() {
		return
	}
	defer f.Unlock()
	for pid, l := range f.left {
		row, err := t.stat(pid)
		if err != nil || row.start != l.start || !f.owns(pid) && reapChild(pid) {
			delete(f.left, pid)
		}
	}
}

// owns says whether a number that was listed is one of the helper's own children, and
// not of what has it by now. The caller has the lock.
func (f *children) owns(pid int) bool {
	p := f.known[pid]
	return p != nil && !p.gone()
}

// reap collects an orphan. What was listed without the lock may be an own child by now.
func (f *children) reap(pid int) {
	f.Lock()
	defer f.Unlock()
	if !f.owns(pid) {
		reapChild(pid)
	}
}

// pruned hides the helper's own children, but for one, and what another execution
// left, with all below them. A number alone hides nobody: a command that forks often
// enough gets any of them.
type pruned struct {
	procTable
	forks *children
	mine  *process
}

func (t pruned) hides(pid int) bool {
	if t.forks.owns(pid) {
		return t.forks.known[pid] != t.mine
	}
	l, left := t.forks.left[pid]
	if !left || l.of == t.mine {
		return false
	}
	row, err := t.stat(pid)
	return err == nil && row.start == l.start
}

func (t pruned) children(pid int) ([]int, error) {
	kids, err := t.procTable.children(pid)
	return slices.DeleteFunc(kids, t.hides), err
}

func (t pruned) all() ([]proc, error) {
	rows, err := t.procTable.all()
	return slices.DeleteFunc(rows, func(r proc) bool { return t.hides(r.pid) }), err
}

// harvestEvery is how long an orphan that has ended may stay a zombie.
const harvestEvery = 200 * time.Millisecond

// harvest reaps what falls to the helper while a command without a pid namespace
// runs: a long one that forks twice would use up this machine's pids.
func (s *supervision) harvest() {
	defer close(s.harvested)
	tick := time.NewTicker(harvestEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
		}
		s.reapOrphans()
	}
}

func (s *supervision) reapOrphans() {
	forks.Lock()
	defer forks.Unlock()
	kids, err := s.table.children(os.Getpid())
	if err != nil { // a kernel without the file: whoever is not a child is left alone
		rows, _ := s.table.all()
		for _, row := range rows {
			if row.ppid == os.Getpid() {
				kids = append(kids, row.pid)
			}
		}
	}
	for _, pid := range kids {
		if !forks.owns(pid) {
			reapChild(pid)
		}
	}
}

// reapChild collects one orphan that came to the subreaper; other pids are left
// alone.
func reapChild(pid int) bool {
	var ws unix.WaitStatus
	got, err := unix.Wait4(pid, &ws, unix.WNOHANG, nil)
	return err == nil && got == pid
}

// reapPidfd collects what a pidfd is of, whatever has its number by now.
func reapPidfd(fd int) bool {
	var si unix.Siginfo
	err := unix.Waitid(unix.P_PIDFD, fd, &si, unix.WEXITED|unix.WNOHANG, nil)
	return err == nil && si.Signo != 0
}

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
