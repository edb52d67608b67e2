//go:build linux || darwin

package server

import (
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// gather is a file that takes several pieces in one writev(2). It is not safe for
// concurrent use; protocol.Writer's lock is around it.
type gather struct {
	*os.File
	conn syscall.RawConn
	left [][]byte
	n    int
	err  error
	once func(fd uintptr) bool // made once: each one made is an allocation

	one   [1][]byte
	ready [1]unix.PollFd
}

func newGather(f *os.File) io.Writer {
	conn, err := f.SyscallConn()
	if err != nil {
		return f
	}
	g := &gather{File: f, conn: conn}
	polled := f.SetWriteDeadline(time.Time{}) == nil
	g.once = func(fd uintptr) bool {
		for {
			g.n, g.err = unix.Writev(int(fd), g.left)
			if g.err != unix.EAGAIN || polled {
				return g.err != unix.EAGAIN
			}
			// Another process that shares it made it non-blocking since this one started.
			g.ready[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLOUT}
			_, _ = unix.Poll(g.ready[:], -1)
		}
	}
	return g
}

// Write is for one piece, by the same way: File's own gives EAGAIN back.
func (g *gather) Write(b []byte) (int, error) {
	g.one[0] = b
	if err := g.WriteVector(g.one[:]); err != nil {
		return 0, err
	}
	return len(b), nil
}

// WriteVector writes all pieces, in one call unless the system takes fewer bytes.
func (g *gather) WriteVector(pieces [][]byte) error {
	defer func() { g.left = nil }()
	for len(pieces) > 0 {
		g.left = pieces
		if err := g.conn.Write(g.once); err != nil {
			return err
		}
		switch {
		case g.err == unix.EINTR:
			continue
		case g.err != nil:
			return os.NewSyscallError("writev", g.err)
		case g.n == 0:
			return io.ErrShortWrite
		}
		pieces = behind(pieces, g.n)
	}
	return nil
}

// behind gives what follows the first n bytes.
func behind(pieces [][]byte, n int) [][]byte {
	for len(pieces) > 0 && n >= len(pieces[0]) {
		n -= len(pieces[0])
		pieces = pieces[1:]
	}
	if n > 0 {
		pieces[0] = pieces[0][n:]
	}
	return pieces
}
