//go:build linux || darwin

package jail

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// pipes holds both ends of what a child needs.
type pipes struct {
	child, ours []*os.File
}

func (p *pipes) closeChild() {
	for _, f := range p.child {
		f.Close()
	}
}

func (p *pipes) closeAll() {
	p.closeChild()
	for _, f := range p.ours {
		f.Close()
	}
}

// pipe makes one pipe; ours is non-blocking (the runtime's poller), the child's
// end is not.
func (p *pipes) pipe(childReads bool) (child, ours *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	child, ours = w, r
	if childReads {
		child, ours = r, w
	}
	setBlocking(child)
	widen(r)
	p.child, p.ours = append(p.child, child), append(p.ours, ours)
	return child, ours, nil
}

// setBlocking takes O_NONBLOCK off a descriptor that a command will see.
func setBlocking(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), false) })
	}
}

// widen asks for more room in a command's pipe: each time that one is full or empty
// costs two switches of context. A refusal (pipe(7): the user's share is used up)
// leaves it as it was.
func widen(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { WidenPipe(int(fd)) })
	}
}
