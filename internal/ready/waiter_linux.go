package ready

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Waiter waits for one descriptor, by an epoll instance of its own that stands in the
// runtime's (epoll(7): an epoll descriptor is readable while it has events). So the
// descriptor itself need not be non-blocking, which is a flag that other processes may
// share, and what its poll(2) tells once is told here.
type Waiter struct {
	file   *os.File
	conn   syscall.RawConn
	seen   [1]unix.EpollEvent
	closed atomic.Bool
}

// New makes a Waiter for events, unix.EPOLLIN and the like, of fd. It must be closed,
// and fd stay open until then. It fails with EPERM for a descriptor that cannot be
// polled, such as a regular file.
func New(fd int, events uint32) (*Waiter, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot wait for a descriptor: %w", err)
	}
	if err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events}); err == nil {
		err = unix.SetNonblock(ep, true) // package os polls no other
	}
	if err != nil {
		unix.Close(ep)
		return nil, fmt.Errorf("cannot wait for a descriptor: %w", err)
	}
	w := &Waiter{file: os.NewFile(uintptr(ep), "epoll")}
	if w.conn, err = w.file.SyscallConn(); err == nil {
		err = w.file.SetReadDeadline(time.Time{}) // fails where it is not polled
	}
	if err != nil {
		w.file.Close()
		return nil, fmt.Errorf("cannot wait for a descriptor: %w", err)
	}
	return w, nil
}

// Wait returns nil once there is an event, os.ErrDeadlineExceeded when the deadline has
// passed or Interrupt was called, and os.ErrClosed after Close.
func (w *Waiter) Wait() error {
	var failed error
	err := w.conn.Read(func(fd uintptr) bool {
		n, err := unix.EpollWait(int(fd), w.seen[:], 0)
		for err == unix.EINTR {
			n, err = unix.EpollWait(int(fd), w.seen[:], 0)
		}
		failed = err
		return n > 0 || err != nil
	})
	switch {
	case err == nil:
		return failed
	case w.closed.Load():
		return os.ErrClosed // package os gives an error of its own
	}
	return err
}

// Within sets the deadline of the present and of later calls of Wait; zero or less means
// none. It is not for callers that also use Interrupt at the same time.
func (w *Waiter) Within(d time.Duration) error {
	if d <= 0 {
		return w.file.SetReadDeadline(time.Time{})
	}
	return w.file.SetReadDeadline(time.Now().Add(d))
}

// Interrupt ends the present call of Wait and, until Within, every later one.
func (w *Waiter) Interrupt() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) }

// Close ends the present call of Wait and frees the instance; fd is left alone.
func (w *Waiter) Close() error {
	w.closed.Store(true)
	return w.file.Close()
}
