package jail

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// forks keeps the helper's own children apart from orphans that a subreaper
// inherits: a fork and its registration are one step for whoever looks.
var forks = children{known: map[int]*process{}, left: map[int]leftover{}}

type children struct {
	sync.Mutex
	known map[int]*process // the helper's own; an entry counts only until that was reaped
	left  map[int]leftover // what could not be killed: no later execution's
}

// leftover is a process and the execution that it is of.
type leftover struct {
	start uint64
	of    *process
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
