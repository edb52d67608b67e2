package jail

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/proctrack"
)

// process is what was spawned: sandbox-exec, then stage 2, then the command, all one
// process with one pid.
type process struct {
	os  *os.Process
	pid int

	stdin          *os.File
	stdout, stderr *os.File
	report         *os.File
	messages       *os.File // what sandbox-exec and an early stage 2 print

	zombie chan struct{} // closed: it has ended and is not reaped yet
	image  *image        // nil before stage 2 may execute the command
	mu     sync.Mutex    // orders signals and the reaping
	reaped bool
}

// writeProfile puts a large profile into a file of this user's alone.
func (j *job) writeProfile() error {
	f, err := j.scratch.beside(profileSuffix)
	if err != nil {
		return fmt.Errorf("cannot write the profile: %w", err)
	}
	j.file = f.Name()
	_, err = f.WriteString(j.profile.Text)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot write the profile: %w", err)
	}
	return nil
}

// removeProfile may be called again and again.
func (j *job) removeProfile() error {
	if j.file == "" {
		return nil
	}
	err := os.Remove(j.file)
	j.file = ""
	return err
}

// spawn starts the jail. An empty environment: the command's variables travel in the
// specification, and sandbox-exec must load nothing that they name.
func (h *Host) spawn(j *job) (*process, error) {
	path, argv, err := j.command()
	if err != nil {
		return nil, err
	}
	var ps pipes
	p := &process{zombie: make(chan struct{})}
	files, err := p.childFiles(&ps, j)
	if err == nil {
		p.os, err = os.StartProcess(path, argv, &os.ProcAttr{Dir: "/", Env: []string{}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
	}
	ps.closeChild()
	if err != nil {
		for _, f := range ps.ours {
			f.Close()
		}
		return nil, fmt.Errorf("cannot start %s: %w", argv[0], err)
	}
	p.pid = p.os.Pid
	go p.await()
	return p, nil
}

// childFiles puts the descriptors where package spec says: the specification is 3,
// the report 4, the command's streams 5 to 7.
func (p *process) childFiles(ps *pipes, j *job) ([]*os.File, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", os.DevNull, err)
	}
	ps.child = append(ps.child, null)
	ends, err := ps.streams(p)
	if err != nil {
		return nil, err
	}
	theirs, err := p.reportSocket(ps)
	if err != nil {
		return nil, err
	}
	specFile, err := j.unlinked(j.spec.Append(nil))
	if err != nil {
		return nil, err
	}
	ps.child = append(ps.child, specFile)
	return []*os.File{null, null, ends[3], specFile, theirs, ends[0], ends[1], ends[2]}, nil
}

// reportSocket makes the pair behind fd 4: a stream, which macOS ends with an end of
// file when the last holder has gone.
func (p *process) reportSocket(ps *pipes) (theirs *os.File, err error) {
	syscall.ForkLock.RLock() // there is no SOCK_CLOEXEC
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(pair[0])
		unix.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("cannot make the report socket: %w", err)
	}
	_ = unix.SetNonblock(pair[0], true)
	p.report, theirs = os.NewFile(uintptr(pair[0]), "report"), os.NewFile(uintptr(pair[1]), "report-peer")
	ps.ours, ps.child = append(ps.ours, p.report), append(ps.child, theirs)
	return theirs, nil
}

// unlinked is a file without a name that holds b: there is no memfd, and a writer of
// a pipe would hang on what it does not hold.
func (j *job) unlinked(b []byte) (*os.File, error) {
	f, err := j.scratch.beside(specSuffix)
	if err != nil {
		return nil, fmt.Errorf("cannot write the specification: %w", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.Write(b)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot write the specification: %w", err)
	}
	return f, nil
}

// await closes zombie when the process has ended, by kqueue(2), which does not reap:
// until it is reaped its number is not another's.
func (p *process) await() {
	defer close(p.zombie)
	for err := p.exitEvent(); err != nil; time.Sleep(proctrack.Interval) {
		row, err := proctrack.System{}.Look(int32(p.pid))
		if errors.Is(err, proctrack.ErrGone) || err == nil && row.Zombie {
			return
		}
	}
}

// exitEvent blocks until the process has ended. An error says nothing about it.
func (p *process) exitEvent() error {
	kq, err := unix.Kqueue()
	if err != nil {
		return err
	}
	defer unix.Close(kq)
	unix.CloseOnExec(kq)
	change := []unix.Kevent_t{{Fflags: unix.NOTE_EXIT}}
	unix.SetKevent(&change[0], p.pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	event := make([]unix.Kevent_t, 1)
	for {
		n, err := unix.Kevent(kq, change, event, nil)
		switch {
		case err == unix.EINTR:
		case err == unix.ESRCH: // it had ended before
			return nil
		case err != nil || n > 0:
			return err
		}
	}
}

// reapLater reaps what did not die, whenever it does.
func (p *process) reapLater() {
	<-p.zombie
	p.reap()
}

// scrap ends a process that nothing was executed in: it has no descendants.
func (p *process) scrap() (err error) {
	p.signalGroup(unix.SIGKILL)
	if Within(KillBound, p.zombie) {
		p.reap()
	} else {
		go p.reapLater()
		err = errUnended
	}
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr, p.report, p.messages} {
		f.Close()
	}
	return err
}

// reap collects the status. Only after zombie is closed.
func (p *process) reap() (syscall.WaitStatus, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st, err := p.os.Wait()
	p.reaped = true
	if err != nil {
		return 0, false
	}
	ws, ok := st.Sys().(syscall.WaitStatus)
	return ws, ok
}

// signalGroup signals the command's group, whose number is that of its leader.
func (p *process) signalGroup(sig unix.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = unix.Kill(-p.pid, sig)
	}
}
