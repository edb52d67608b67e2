package jail

import "golang.org/x/sys/unix"

// image is the kernel's word that a process has executed a program. The end of fd 4 is
// none: a process that dies closes it too.
type image struct {
	kq  int
	new bool
}

// watchImage has the kernel note from now on that the process executes a program. ESRCH:
// it has ended.
func (p *process) watchImage() error {
	kq, err := unix.Kqueue()
	if err != nil {
		return err
	}
	unix.CloseOnExec(kq)
	change := []unix.Kevent_t{{Fflags: unix.NOTE_EXEC}}
	unix.SetKevent(&change[0], p.pid, unix.EVFILT_PROC, unix.EV_ADD)
	for {
		_, err := unix.Kevent(kq, change, nil, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			unix.Close(kq)
			return err
		}
		p.image = &image{kq: kq}
		return nil
	}
}

// newImage says whether it has, and goes on saying so when it has ended.
func (p *process) newImage() bool {
	if p.image == nil || p.image.new {
		return p.image != nil
	}
	event := make([]unix.Kevent_t, 1)
	for {
		n, err := unix.Kevent(p.image.kq, nil, event, &unix.Timespec{})
		if err == unix.EINTR {
			continue
		}
		p.image.new = err == nil && n > 0 && event[0].Fflags&unix.NOTE_EXEC != 0
		return p.image.new
	}
}

func (p *process) forgetImage() {
	if p.image != nil {
		unix.Close(p.image.kq)
		p.image = nil
	}
}
