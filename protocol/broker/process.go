package broker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"sandboxd/protocol"
)

// process is the helper's process, as far as the client needs it.
type process interface {
	Wait() error      // nil: exit status 0; *ExitError otherwise
	Interrupt() error // asks for an orderly end
	Kill() error
}

// link is everything between the client and its helper.
type link struct {
	proc process
	in   io.WriteCloser // the helper's standard input
	out  io.ReadCloser  // the helper's standard output
}

const stderrTail = 4096 // bytes kept for ExitError

// spawn starts the helper with the base policy on descriptor 3.
func spawn(o Options) (*link, error) {
	cmd := exec.Command(o.Path, o.Args...)
	cmd.Env, cmd.Dir = o.Env, o.Dir
	cmd.SysProcAttr = ownGroup() // the terminal's signals are the caller's to handle
	cmd.WaitDelay = time.Second  // nothing that holds stderr open may hang Wait
	tail := &tailWriter{next: o.Stderr}
	cmd.Stderr = tail

	var files pipes
	inR, inW := files.open()
	outR, outW := files.open()
	polR, polW := files.open()
	if files.err != nil {
		files.closeAll()
		return nil, fmt.Errorf("cannot start helper %q: %w", o.Path, files.err)
	}
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = inR, outW, []*os.File{polR}
	if err := cmd.Start(); err != nil {
		files.closeAll()
		if errors.Is(err, syscall.EBADF) { // dup3(2): the number is beyond RLIMIT_NOFILE
			err = fmt.Errorf("%w (%w)", syscall.EMFILE, err)
		}
		return nil, fmt.Errorf("cannot start helper %q: %w", o.Path, err)
	}
	for _, f := range []*os.File{inR, outW, polR} {
		f.Close()
	}
	p := &osProcess{cmd: cmd, tail: tail, policy: polW}
	p.feed(o.Policy.Append(nil))
	return &link{proc: p, in: inW, out: outR}, nil
}

type osProcess struct {
	cmd    *exec.Cmd
	tail   *tailWriter
	policy *os.File
	fed    sync.WaitGroup
}

// feed writes the policy in the background: it may be larger than a pipe holds,
// and a helper that never reads it must not hold up its own start-up error.
func (p *osProcess) feed(b []byte) {
	p.fed.Go(func() {
		p.policy.Write(b) // an error shows as the helper's own: a truncated policy
		p.policy.Close()
	})
}

func (p *osProcess) Wait() error {
	err := p.cmd.Wait()
	p.policy.Close()
	p.fed.Wait()
	if err == nil || (errors.Is(err, exec.ErrWaitDelay) && p.cmd.ProcessState.Success()) {
		return nil
	}
	state := p.cmd.ProcessState
	if state == nil {
		return &ExitError{Status: -1, Cause: err.Error(), Stderr: p.tail.String()}
	}
	return &ExitError{Status: state.ExitCode(), Cause: state.String(), Stderr: p.tail.String()}
}

func (p *osProcess) Interrupt() error { return p.cmd.Process.Signal(os.Interrupt) }
func (p *osProcess) Kill() error      { return p.cmd.Process.Kill() }

// pipes opens pipes and remembers the first error.
type pipes struct {
	files []*os.File
	err   error
}

func (p *pipes) open() (r, w *os.File) {
	if p.err != nil {
		return nil, nil
	}
	r, w, p.err = os.Pipe()
	if p.err == nil {
		p.files = append(p.files, r, w)
	}
	return r, w
}

func (p *pipes) closeAll() {
	for _, f := range p.files {
		f.Close()
	}
}

// tailWriter passes on what the helper says and keeps the end of it.
type tailWriter struct {
	next io.Writer
	mu   sync.Mutex
	buf  []byte
}

func (t *tailWriter) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.buf = append(t.buf, b...)
	if n := len(t.buf) - stderrTail; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	t.mu.Unlock()
	if t.next != nil {
		t.next.Write(b) // a caller's broken writer must not stop the helper's
	}
	return len(b), nil
}

func (t *tailWriter) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// base returns the policy that governs c, with the limits that replace its own.
func (o Options) base(c Command) protocol.Policy {
	p := o.Policy
	if c.Policy != nil {
		p = c.Policy
	}
	q := *p
	if c.Limits != nil {
		q.Limits = *c.Limits
	}
	return q
}
