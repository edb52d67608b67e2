package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sandboxd/protocol"
)

// Helper is one running sandboxd.
type Helper struct {
	opts     Options
	link     *link
	features []string
	peer     string

	control chan outgoing // everything but stdin: written first
	stdin   chan outgoing
	hello   chan protocol.Hello
	stop    chan struct{} // closed: nothing is written any more
	done    chan struct{} // closed: the process has ended, all is settled
	stopped sync.Once
	settled sync.Once
	left    atomic.Bool  // the read loop is left behind, in a writer of the caller's
	wait    func() error // for the process's end, by whoever asks
	cut     *time.Timer  // closes the input under a write that does not end
	wg      sync.WaitGroup

	mu      sync.Mutex
	next    uint64
	exited  uint64 // the last execution with an exit
	execs   map[uint64]*Execution
	beats   map[uint64]chan struct{}
	closing bool
	killed  bool
	chanErr error // why the channel failed
	exitErr error // set before done is closed
}

// outgoing is one encoded frame; written (if any) gets a value after the write.
type outgoing struct {
	frame   []byte
	written chan<- struct{}
}

// Start starts a helper, waits for its hello and answers it. ctx bounds the start
// only; the helper lives until Shutdown or Close. A helper that ends before its
// hello gives an *ExitError with what it said.
func Start(ctx context.Context, o Options) (*Helper, error) {
	if o.Path == "" || o.Policy == nil {
		return nil, errors.New("cannot start helper: Options.Path and Options.Policy are required")
	}
	o = o.withDefaults()
	l, err := spawn(o)
	if err != nil {
		return nil, err
	}
	return open(ctx, o, l)
}

// open speaks the hello over a link and takes it over.
func open(ctx context.Context, o Options, l *link) (*Helper, error) {
	h := &Helper{
		opts: o, link: l,
		control: make(chan outgoing), stdin: make(chan outgoing),
		hello: make(chan protocol.Hello, 1),
		stop:  make(chan struct{}), done: make(chan struct{}),
		execs: map[uint64]*Execution{}, beats: map[uint64]chan struct{}{},
		wait: sync.OnceValue(l.proc.Wait),
	}
	h.wg.Go(h.writeLoop)
	h.wg.Go(h.readLoop)
	ctx, cancel := context.WithTimeout(ctx, o.StartTimeout)
	defer cancel()
	if err := h.greet(ctx); err != nil {
		h.end(2 * time.Second)
		return nil, fmt.Errorf("cannot start helper %q: %w", o.Path, err)
	}
	return h, nil
}

func (h *Helper) greet(ctx context.Context) error {
	var hello protocol.Hello
	select {
	case hello = <-h.hello:
	case <-h.done:
		return h.lost()
	case <-ctx.Done():
		return fmt.Errorf("no hello from it: %w", context.Cause(ctx))
	}
	if hello.Proto != protocol.ExecVersion {
		return fmt.Errorf("%w: it speaks exec protocol %d, this client %d; use a matching version of both",
			ErrProtoMismatch, hello.Proto, protocol.ExecVersion)
	}
	h.features, h.peer = hello.Features, hello.Peer
	return h.send(ctx, h.newID(), protocol.Hello{Proto: protocol.ExecVersion, Peer: h.opts.Peer})
}

// Features are those of the helper's hello: what this host offers.
func (h *Helper) Features() []string { return slices.Clone(h.features) }

// Has reports whether the hello named the feature.
func (h *Helper) Has(feature string) bool { return slices.Contains(h.features, feature) }

// Peer is how the helper's hello names it.
func (h *Helper) Peer() string { return h.peer }

// Heartbeat asks for a sign of life and waits for it.
func (h *Helper) Heartbeat(ctx context.Context) error {
	id, beat := h.newID(), make(chan struct{})
	h.mu.Lock()
	h.beats[id] = beat
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.beats, id)
		h.mu.Unlock()
	}()
	if err := h.send(ctx, id, protocol.Heartbeat{}); err != nil {
		return err
	}
	select {
	case <-beat:
		return nil
	case <-h.done:
		return h.lost()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Shutdown asks for an orderly end and waits for it. nil is the proof of one: the
// helper's exit status was 0. A running command is stopped. When ctx ends first the
// helper is left as it is; call Close.
func (h *Helper) Shutdown(ctx context.Context) error {
	h.refuseNew()
	if err := h.send(ctx, h.newID(), protocol.Shutdown{}); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	select {
	case <-h.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	h.join()
	return h.exitErr
}

// Close ends the helper whatever it is doing: its input is closed, which asks for
// an orderly end, and after Options.Patience it is killed. It returns nil only if
// the helper's exit status was 0. It may be called again. What keeps a killed helper
// from being done with (a file system that hangs, a writer of the caller's that blocks)
// is waited for no longer than some seconds: the error is ErrKilled then too.
func (h *Helper) Close() error {
	h.refuseNew()
	h.end(h.opts.Patience)
	return h.exitErr
}

// Kill kills the helper at once. The jail of a running command dies with it.
func (h *Helper) Kill() error {
	h.refuseNew()
	h.kill()
	h.end(0)
	return h.exitErr
}

func (h *Helper) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.done:
	default:
		h.killed = true
		h.link.proc.Kill()
	}
}

func (h *Helper) end(patience time.Duration) {
	h.hangUp()
	if !h.ended(patience) {
		h.kill()
		h.bury()
	}
	h.join()
}

// How long a killed helper may take to die, and then its output to be read to its end,
// which something else may hold or the caller's writer may not take.
const (
	deathBound = 5 * time.Second
	readBound  = 2 * time.Second
)

// bury has a killed helper count as ended at the latest when these bounds have passed.
func (h *Helper) bury() {
	gone := make(chan error, 1)
	go func() { gone <- h.wait() }()
	if h.ended(readBound) {
		return
	}
	h.link.out.Close()
	var err error
	select {
	case err = <-gone:
	case <-time.After(deathBound):
		err = errStays()
	}
	if !h.ended(readBound / 2) {
		h.left.Store(true)
		h.conclude(err)
	}
}

// errStays is a process that no signal ends, which is so as long as a thread of it waits
// in the kernel.
func errStays() error {
	return fmt.Errorf("%w: it does not die; see whether a file system hangs", ErrClosed)
}

// join waits for what this client runs, unless that is held up by the caller's own.
func (h *Helper) join() {
	<-h.done
	if !h.left.Load() {
		h.wg.Wait()
	}
}

func (h *Helper) ended(within time.Duration) bool { return closes(h.done, within) }

// closes says whether a channel is closed by then. Of two cases that are ready, select
// takes any: what has ended in time counts as that.
func closes(done <-chan struct{}, within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// hangUp stops the writing; the writer closes the helper's input. A frame that is
// being written gets a second to become whole: a cut one would be a malformed frame
// and an unclean end.
func (h *Helper) hangUp() {
	h.stopped.Do(func() {
		close(h.stop)
		h.cut = time.AfterFunc(time.Second, func() { h.link.in.Close() })
	})
}

func (h *Helper) refuseNew() {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
}

func (h *Helper) newID() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	return h.next
}

// lost says why nothing more comes from the helper; call it after done.
func (h *Helper) lost() error {
	<-h.done
	switch {
	case h.chanErr != nil:
		return h.chanErr
	case h.exitErr != nil:
		return h.exitErr
	}
	return ErrClosed
}

// settle is the end of the read loop.
func (h *Helper) settle() { h.conclude(h.wait()) }

// conclude notes how the process ended, and tells whoever still waits for an answer.
func (h *Helper) conclude(err error) { h.settled.Do(func() { h.close(err) }) }

func (h *Helper) close(err error) {
	h.hangUp()
	h.cut.Stop()
	h.link.in.Close() // nobody reads it now
	h.link.out.Close()
	h.mu.Lock()
	if h.killed && err != nil {
		err = fmt.Errorf("%w (%w)", ErrKilled, err)
	}
	h.exitErr, h.closing = err, true
	open := slices.Collect(maps.Values(h.execs))
	clear(h.execs)
	h.mu.Unlock()
	close(h.done)
	for _, e := range open {
		e.finish(nil, fmt.Errorf("the execution has no end: %w", h.lost()))
	}
}
