package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"sandboxd/protocol"
)

// Execution is one running command.
type Execution struct {
	h      *Helper
	id     uint64
	ctx    context.Context
	policy protocol.Policy // what governs it
	sinks  [2]sink         // stdout, stderr; used by the read loop only

	cancel      sync.Once
	inputClosed chan struct{} // closed: no stdin any more
	closeOnce   sync.Once
	inputMu     sync.Mutex // one writer of stdin at a time
	copyMu      sync.Mutex // before inputMu
	copyBuf     []byte
	written     chan struct{}
	sent        atomic.Int64 // bytes of stdin

	finished chan struct{} // closed: the fields below are final
	mu       sync.Mutex
	inErr    error // of Command.Stdin
	result   Result
	err      error
}

// Exec runs a command and waits for its end. The error is nil when the command
// ended, whatever its exit status. When ctx ends first the command is cancelled by
// the helper's ladder (TERM, grace, KILL), its end is waited for, and the error is
// ctx's; the Result is still that of the helper.
//
// Other errors: *Error (nothing ran, or not to its end), *NotEnforcedError with
// Demand Full, an error of Stdin, Stdout or Stderr, or the loss of the helper
// (ErrClosed, ErrKilled, ErrProtocol).
func (h *Helper) Exec(ctx context.Context, c Command) (Result, error) {
	e, err := h.Start(ctx, c)
	if err != nil {
		return Result{}, err
	}
	return e.Wait()
}

// Start asks for a command to be run and returns at once; a refusal shows in Wait,
// which must be called.
func (h *Helper) Start(ctx context.Context, c Command) (*Execution, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("cannot start a command: Command.Argv is empty")
	}
	e := &Execution{
		h: h, ctx: ctx, policy: h.opts.base(c),
		sinks:       [2]sink{{w: c.Stdout}, {w: c.Stderr}},
		inputClosed: make(chan struct{}), finished: make(chan struct{}),
		written: make(chan struct{}, 1),
	}
	if err := h.checkBefore(); err != nil {
		return nil, err
	}
	if err := h.register(e); err != nil {
		return nil, err
	}
	if err := h.send(ctx, e.id, request(c)); err != nil {
		h.forget(e.id)
		return nil, fmt.Errorf("cannot start a command: %w", err)
	}
	e.attach(c)
	return e, nil
}

func (h *Helper) register(e *Execution) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return fmt.Errorf("cannot start a command: %w", ErrClosed)
	}
	h.next++
	e.id = h.next
	h.execs[e.id] = e
	return nil
}

// attach starts what accompanies the command: its input and the watch over ctx.
// Neither belongs to the helper's goroutines: a Read of the caller may never return.
func (e *Execution) attach(c Command) {
	switch {
	case c.Stdin != nil:
		go e.pump(c.Stdin)
	case !c.OpenStdin:
		go e.CloseStdin()
	}
	stop := context.AfterFunc(e.ctx, e.Cancel)
	go func() {
		<-e.finished
		stop()
	}()
}

func request(c Command) protocol.ExecStart {
	s := protocol.ExecStart{Argv: c.Argv, Env: c.Env, Cwd: c.Cwd, Token: make([]byte, tokenBytes)}
	rand.Read(s.Token) // never fails, see crypto/rand
	if c.Policy != nil {
		s.Policy = c.Policy.Append(nil)
	}
	if c.Limits != nil {
		s.Limits = c.Limits.Append(nil)
	}
	return s
}

// Wait waits for the end. See Exec for the errors; here a Cancel that the caller
// asked for by hand is none.
func (e *Execution) Wait() (Result, error) {
	<-e.finished
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.result, e.err
}

// Cancel has the command stopped by the helper's ladder and returns at once. Where
// the helper cannot be told, because it waits for the command to read its input, it
// is interrupted, which ends it after the command. One that does not answer within
// Options.Patience is killed.
func (e *Execution) Cancel() {
	e.cancel.Do(func() {
		e.closeInput()
		go e.climb()
	})
}

// deaf is how long a helper may be silent after a cancel: its ladder takes 2 s, and 5 s
// more for a command that does not die.
const deaf = 8 * time.Second

// mostPending is the unread input that a helper takes before it waits for the command.
const mostPending = 16 << 20

func (e *Execution) climb() {
	ctx, done := context.WithTimeout(context.Background(), time.Second)
	err := e.h.sendNow(ctx, e.id, protocol.Cancel{})
	done()
	wait := time.Duration(0)
	if err == nil { // it may lie behind input that the helper cannot take
		wait = min(deaf, e.h.opts.Patience/2)
	}
	// One that took all its input has heard: if no answer comes, Command.Stdout may be slow.
	if !e.over(wait) && (err != nil || e.sent.Load() > mostPending) {
		e.h.link.proc.Interrupt()
	}
	if !e.over(e.h.opts.Patience - wait) {
		_ = e.h.Kill()
	}
}

func (e *Execution) over(within time.Duration) bool { return closes(e.finished, within) }

// finish settles the execution. It is for whoever took it out of the helper's list.
func (e *Execution) finish(exit *protocol.ExecExit, err error) {
	e.closeInput()
	e.mu.Lock()
	if exit != nil {
		e.result = Result{*exit}
		err = e.verdict()
	}
	e.err = err
	e.mu.Unlock()
	close(e.finished)
}

// verdict joins what is wrong with an execution that has ended.
func (e *Execution) verdict() error {
	errs := []error{e.h.checkAfter(e.policy, e.result), e.inErr}
	for i := range e.sinks {
		if err := e.sinks[i].err; err != nil {
			errs = append(errs, fmt.Errorf("cannot pass on the command's %s: %w", streams[i], err))
		}
	}
	if cause := context.Cause(e.ctx); cause != nil && e.result.Cancelled && !e.result.TimedOut {
		errs = append(errs, cause)
	}
	return errors.Join(errs...)
}

var streams = [2]protocol.Stream{protocol.Stdout, protocol.Stderr}

// sink is where one stream goes.
type sink struct {
	w     io.Writer
	bytes uint64
	err   error
}

func (e *Execution) output(o protocol.ExecOut) error {
	s := &e.sinks[0]
	if o.Stream == protocol.Stderr {
		s = &e.sinks[1]
	}
	s.bytes += uint64(len(o.Data))
	if s.bytes != o.Bytes {
		return fmt.Errorf("%w: it counts %d bytes of %s, %d came", ErrProtocol, o.Bytes, o.Stream, s.bytes)
	}
	if s.w == nil || s.err != nil || len(o.Data) == 0 {
		return nil
	}
	if _, s.err = s.w.Write(o.Data); s.err != nil {
		e.Cancel()
	}
	return nil
}

func (e *Execution) exited(x protocol.ExecExit) error {
	if x.StdoutBytes != e.sinks[0].bytes || x.StderrBytes != e.sinks[1].bytes {
		return fmt.Errorf("%w: its exec_exit counts %d and %d bytes of output, %d and %d came",
			ErrProtocol, x.StdoutBytes, x.StderrBytes, e.sinks[0].bytes, e.sinks[1].bytes)
	}
	if e.h.forget(e.id) {
		e.finish(&x, nil)
	}
	return nil
}
