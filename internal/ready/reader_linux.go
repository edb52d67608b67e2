package ready

import (
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Reader gives a reader of f, a descriptor that this process inherited, that waits on
// the runtime's poller where f is a pipe or a socket; else f itself. It never changes
// f's own flags, which the process at the other end of a terminal or of a shared
// description would feel. It must be the only reader.
func Reader(f *os.File) io.Reader {
	var st unix.Stat_t
	fd := int(f.Fd())
	if unix.Fstat(fd, &st) != nil {
		return f
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO: // opened again, it has flags of its own (proc_pid_fd(5))
		again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			return os.NewFile(uintptr(again), f.Name())
		}
	case unix.S_IFSOCK:
		if w, err := New(fd, unix.EPOLLIN|unix.EPOLLRDHUP); err == nil {
			return &socket{f, fd, w}
		}
	}
	return f
}

// socket reads what is there, and waits when there is nothing (recv(2), MSG_DONTWAIT).
type socket struct {
	file *os.File // kept open
	fd   int
	wait *Waiter
}

func (s *socket) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, _, err := unix.Recvfrom(s.fd, b, unix.MSG_DONTWAIT)
		switch {
		case err == nil && n > 0:
			return n, nil
		case err == nil:
			return 0, io.EOF
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if err := s.wait.Wait(); err != nil {
				return 0, err
			}
		default:
			return 0, &os.PathError{Op: "read", Path: s.file.Name(), Err: err}
		}
	}
}
