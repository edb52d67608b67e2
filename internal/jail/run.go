package jail

import (
	"fmt"
	"sync"
	"time"

	"sandboxd/internal/plan"
	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

// The ladder's times, and the bounds on waiting (design: supervision).
const (
	Grace       = 2 * time.Second  // from TERM to KILL
	KillBound   = 5 * time.Second  // how long a killed process may take to die
	DrainBound  = 1 * time.Second  // reading the tail of a pipe that a survivor holds
	LaunchBound = 30 * time.Second // from spawn to stage 2's report

	// bubblewrap reads the whole mount table for every bind, so many binds
	// take their time on any host: 2,800 of them get 86 s in all.
	launchPerMount = 20 * time.Millisecond
)

// Request is one accepted exec_start.
type Request struct {
	Policy protocol.Policy
	Argv   []string
	Env    map[string]string
	Cwd    string
}

// Sink receives output. Its calls may block: that is how a slow broker slows
// the command down. After an error nothing more of that stream is sent.
type Sink interface {
	Output(s protocol.Stream, data []byte, total uint64, truncated bool) error
}

// Error ends an execution without an exit: Code is refused or spawn_failed.
type Error struct {
	Code protocol.Code
	Msg  string
}

func (e *Error) Error() string { return e.Msg }

func refused(format string, args ...any) *Error {
	return &Error{protocol.CodeRefused, fmt.Sprintf(format, args...)}
}

func spawnFailed(format string, args ...any) *Error {
	return &Error{protocol.CodeSpawnFailed, fmt.Sprintf(format, args...)}
}

// Reason is why an execution is stopped.
type Reason uint8

// Reasons to climb the ladder.
const (
	NotStopped Reason = iota
	Cancelled         // cancel, shutdown, a closed channel
	Deadline          // wall_s
	MaskLost          // a protected path lost its mask
)

// Run is one execution.
type Run struct {
	req   Request
	sink  Sink
	start time.Time
	stdin *stdinQueue

	mu     sync.Mutex
	reason Reason        // the first that was asked for
	stop   chan struct{} // closed when a reason is set

	giveUp sync.Once
	given  chan struct{} // closed: the broker will not read the output

	done     chan struct{} // the command is reaped, its output pumped
	released chan struct{} // nothing of it is left on the host
	exit     *protocol.ExecExit
	err      *Error
	leftover error
}

func newRun(req Request, sink Sink) *Run {
	return &Run{
		req: req, sink: sink, start: time.Now(), stdin: newStdinQueue(),
		stop: make(chan struct{}), given: make(chan struct{}), done: make(chan struct{}), released: make(chan struct{}),
	}
}

// Stop climbs the ladder: TERM, Grace, KILL. The first reason counts; a
// repeated call changes nothing.
func (r *Run) Stop(why Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason == NotStopped {
		r.reason = why
		close(r.stop)
	}
}

func (r *Run) stopReason() Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reason
}

// Abandon ends the wait for a sink that takes no output: the execution is then
// released although its output was not passed on. Call it after Stop, when the
// helper has to end.
func (r *Run) Abandon() { r.giveUp.Do(func() { close(r.given) }) }

// Done is closed when the command has been reaped and its output pumped.
func (r *Run) Done() <-chan struct{} { return r.done }

// Released is closed when mounts, placeholders and processes are gone too.
func (r *Run) Released() <-chan struct{} { return r.released }

// Result is the terminal frame's body, after Done: exactly one of both.
func (r *Run) Result() (*protocol.ExecExit, *Error) { return r.exit, r.err }

// Leftover is what could not be removed, after Released.
func (r *Run) Leftover() error { return r.leftover }

// deadline arms wall_s. The time counts from the acceptance of exec_start.
func (r *Run) deadline() *time.Timer {
	wall := r.req.Policy.Limits.WallSeconds
	if wall == 0 || wall > uint64((1<<62)/time.Second) {
		return nil
	}
	return time.AfterFunc(time.Until(r.start.Add(time.Duration(wall)*time.Second)), func() { r.Stop(Deadline) })
}

// ended is what supervise found out about the command.
type ended struct {
	code, signal int
	stopped      Reason // whose TERM or KILL met a living command
	report       *spec.Report
	found        []plan.Skip // what happened while it ran
}

// wall is the time since exec_start was accepted, in milliseconds.
func (r *Run) wall() uint64 { return uint64(time.Since(r.start).Milliseconds()) }
