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

// pipeBytes says how many bytes wait in a pipe.
func pipeBytes(f *os.File) int {
	c, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	const fionread = 0x4004667f // FIONREAD of <sys/filio.h>
	n := 0
	_ = c.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), fionread) })
	return n
}
