package jail

import (
	"os"

	"golang.org/x/sys/unix"
)

// WidenPipe has nothing to do: macOS sizes its pipes by itself.
func WidenPipe(int) {}

// newPipe makes a pipe; the child's end is not non-blocking.
func newPipe(childReads bool) (child, ours *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	child, ours = w, r
	if childReads {
		child, ours = r, w
	}
	if c, err := child.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), false) })
	}
	return child, ours, nil
}
