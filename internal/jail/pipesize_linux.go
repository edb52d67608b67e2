package jail

import (
	"os"

	"golang.org/x/sys/unix"
)

// PipeSize is what is asked for each pipe, in bytes: the most that an ordinary user
// gets (pipe(7), /proc/sys/fs/pipe-max-size).
const PipeSize = 1 << 20

// WidenPipe enlarges a pipe; anything else is left alone.
func WidenPipe(fd int) { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, PipeSize) }

// newPipe makes a pipe of that size: each time that one is full or empty costs two
// switches of context. A refusal (the user's share is used up) leaves it as it was. The
// child's end never meets the runtime's poller: os.Pipe would give it to that and take
// it away again, at eight more calls.
func newPipe(childReads bool) (child, ours *os.File, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	WidenPipe(p[0])
	theirs, mine := p[1], p[0]
	if childReads {
		theirs, mine = p[0], p[1]
	}
	if err := unix.SetNonblock(mine, true); err != nil {
		unix.Close(p[0])
		unix.Close(p[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(theirs), "|child"), os.NewFile(uintptr(mine), "|helper"), nil
}

// pipeBytes says how many bytes wait in a pipe.
func pipeBytes(f *os.File) int {
	c, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	_ = c.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}
