package jail

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sandboxd/internal/ready"
	"sandboxd/internal/stage2/spec"
)

// process is a spawned scaffolding: bubblewrap's supervisor, or in degraded mode
// stage 2 itself.
type process struct {
	os     *os.Process
	pid    int
	jailed bool

	stdin          *os.File
	stdout, stderr *os.File
	report         *os.File
	messages       *os.File // what bubblewrap and an early stage 2 print

	exit   chan *os.ProcessState // buffered; the scaffolding was reaped
	mu     sync.Mutex            // orders signals to the group and the reaping
	reaped bool

	init      int  // pid of the namespace's init, 0 unknown
	initFD    int  // its pidfd, -1
	settled   bool // it waits, and its life is bound to its supervisor's
	table     int  // its mount table, -1; tableErr says why there is none
	tableErr  error
	payload   int           // pid, 0 unknown
	payloadFD int           // its pidfd, -1
	waiter    *ready.Waiter // for that; nil before it is known
	told      bool          // the command came with the word that it may run
	small     bool          // its stage 2 is the small one, see self
	began     bool          // stage 2 said so before there was a command for it
}

// memfd makes a sealed in-memory file that holds b, read from its start.
func memfd(name string, b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("cannot make a memfd for %s: %w", name, err)
	}
	return sealed(fd, name, b)
}

// sealed writes an empty memfd, for good.
func sealed(fd int, name string, b []byte) (*os.File, error) {
	f := os.NewFile(uintptr(fd), name)
	var err error
	if _, err = f.WriteAt(b, 0); err == nil { // the offset stays at the start
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
			unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE|unix.F_SEAL_SEAL)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot write the memfd for %s: %w", name, err)
	}
	return f, nil
}

// forker is the one thread that starts scaffoldings, and ends with the helper: a
// parent-death signal follows the thread that forked, not its process (prctl(2),
// PR_SET_PDEATHSIG). A supervision is then bound to no thread, which saves two
// switches for whatever it hears.
var forker = struct {
	sync.Once
	work chan func()
}{work: make(chan func())}

// onForker calls f on that thread, and waits. A fork returns with the child's execve, which
// can hang, and to Go's scheduler the thread is running all the time: the rest of the helper
// needs a processor beside it, on a machine with one only too.
func onForker(f func()) {
	forker.Do(func() {
		runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
		go func() {
			runtime.LockOSThread()
			for f := range forker.work {
				f()
			}
		}()
	})
	done := make(chan struct{})
	forker.work <- func() { f(); close(done) }
	<-done
}

// spawn starts the scaffolding.
func (h *Host) spawn(j *job) (*process, error) {
	var ps pipes
	p := &process{jailed: j.bwrap != nil, exit: make(chan *os.ProcessState, 1), initFD: -1, payloadFD: -1, table: -1}
	files, err := h.childFiles(&ps, p, j)
	if err != nil {
		ps.closeAll()
		return nil, err
	}
	path, argv := imagePath, []string{"sandboxd", "--exec"}
	// A group of its own: signals to the helper's stay there. An empty environment:
	// /proc/1/environ shows whatever bubblewrap had.
	alone := &syscall.SysProcAttr{Setsid: !p.jailed || !h.noTerminal}
	alone.Setpgid = !alone.Setsid
	attr := &os.ProcAttr{Dir: "/", Env: []string{}, Files: files, Sys: alone}
	if p.jailed {
		path = h.Facts.Bwrap.Path
		argv = []string{"bwrap", "--args", fmt.Sprint(spec.FirstFD), "--", imagePath, "--exec"}
	} else {
		// Not for bubblewrap: killed before it has released what it cloned, it would
		// leave that waiting for ever. It asks for the signal itself just before.
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	j.born(attr.Sys)
	err = p.fork(path, argv, attr)
	if err != nil && j.outside(err) {
		attr.Sys.UseCgroupFD = false
		err = p.fork(path, argv, attr)
	}
	ps.closeChild()
	if err != nil {
		ps.closeAll()
		if h.self.refused(p, nil, err.Error()) {
			err = errors.Join(errSmall, err)
		}
		return nil, fmt.Errorf("cannot start %s: %w", argv[0], err)
	}
	go p.reap()
	return p, nil
}

// quiesce has the collector do nothing until its percentage is set again: it would wait
// for a thread that forks, and all others for it. SetGCPercent itself waits for marking
// alone; what comes after that looks at every processor once more, and ends before
// anything else can stop the world.
func quiesce() (percent int) {
	percent = debug.SetGCPercent(-1)
	runtime.ReadMemStats(&unread)
	return percent
}

// unread is there because it is large.
var unread runtime.MemStats

// fork starts the child and registers it, as one step for whoever looks.
func (p *process) fork(path string, argv []string, attr *os.ProcAttr) error {
	forks.Lock()
	defer forks.Unlock()
	var err error
	onForker(func() {
		percent := quiesce()
		defer debug.SetGCPercent(percent)
		p.os, err = os.StartProcess(path, argv, attr)
	})
	if errors.Is(err, unix.EBADF) { // dup2(2): the number is beyond RLIMIT_NOFILE
		err = fmt.Errorf("%w (%w)", unix.EMFILE, err)
	}
	if err != nil {
		return err
	}
	p.pid = p.os.Pid
	forks.known[p.pid] = p
	return nil
}

// reap collects the scaffolding. It waits on a pidfd first, which costs no thread, and
// then in waitid(2): somebody may trace it, who is told of its end before.
func (p *process) reap() {
	p.ended()
	var si unix.Siginfo
	for unix.Waitid(unix.P_PID, p.pid, &si, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	p.mu.Lock()
	st, err := p.os.Wait()
	if err != nil {
		st = nil
	}
	p.reaped = true
	p.mu.Unlock()
	p.exit <- st // first: another fork may hang under the lock
	forks.Lock()
	defer forks.Unlock()
	if forks.known[p.pid] == p { // the number may be the next one's by now
		delete(forks.known, p.pid)
	}
}

// gone says whether the child was reaped. As long as it was not, its number was no
// other's in whatever was listed before.
func (p *process) gone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped
}

// zombie says whether the scaffolding has ended: reap tells it, or is about to.
func (p *process) zombie() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var si unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.pid, &si, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return p.reaped || err == nil && si.Signo != 0
}

// ended waits for the end of the scaffolding, if it can.
func (p *process) ended() {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if w, err := ready.New(fd, unix.EPOLLIN); err == nil {
		defer w.Close()
		_ = w.Wait()
	}
}

// signalGroup signals the scaffolding's group. The group's number is its leader's
// pid, which cannot be another's before the leader was reaped.
func (p *process) signalGroup(sig unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(-p.pid, sig)
	}
}

// childFiles puts the descriptors where package spec says.
func (h *Host) childFiles(ps *pipes, p *process, j *job) ([]*os.File, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", os.DevNull, err)
	}
	ps.child = append(ps.child, null)
	ends, err := ps.streams(p)
	if err != nil {
		return nil, err
	}
	ourReport, theirReport, err := reportSocket()
	if err != nil {
		return nil, err
	}
	p.report = ourReport
	ps.ours, ps.child = append(ps.ours, ourReport), append(ps.child, theirReport)
	var self *os.File
	self, p.small = h.self.image()
	specFile, err := memfd("spec", j.spec.Append(nil))
	if err != nil {
		return nil, err
	}
	ps.child = append(ps.child, specFile)
	files := []*os.File{null, null, ends[3], specFile, theirReport, ends[0], ends[1], ends[2], self}
	if j.bwrap == nil {
		return files, nil
	}
	more, err := j.inherit(null)
	ps.child = append(ps.child, slices.DeleteFunc(slices.Clone(more), func(f *os.File) bool { return f == null })...)
	files = append(files, more...)
	if h.leash != nil {
		files = append(files, h.leash.File())
	}
	return files, err
}
