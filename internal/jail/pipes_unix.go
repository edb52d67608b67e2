//go:build linux || darwin

package jail

import (
	"fmt"
	"os"
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
	if child, ours, err = newPipe(childReads); err != nil {
		return nil, nil, fmt.Errorf("cannot make a pipe: %w", err)
	}
	p.child, p.ours = append(p.child, child), append(p.ours, ours)
	return child, ours, nil
}

// streams makes the pipes of the command's three streams and of what its scaffolding
// prints, in this order; stdin is the one that the child reads.
func (p *pipes) streams(of *process) (child [4]*os.File, err error) {
	for i, ours := range []**os.File{&of.stdin, &of.stdout, &of.stderr, &of.messages} {
		if child[i], *ours, err = p.pipe(i == 0); err != nil {
			return child, err
		}
	}
	return child, nil
}
