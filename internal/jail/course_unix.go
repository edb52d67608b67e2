//go:build linux || darwin

package jail

import (
	"errors"
	"time"

	"sandboxd/internal/stage2/spec"
)

// errEndOfReport is the end of fd 4: stage 2 has executed the command, or died.
var errEndOfReport = errors.New("end of fd 4")

// said is one thing that fd 4 said.
type said struct {
	spec.Message
	err error
}

// means is what a course does to its process, and what it asks of it.
type means interface {
	allow() (told bool, err error) // tells stage 2 to execute the command; not told: it has died
	ran() bool                     // a program has been executed since
	unheard() bool                 // fd 4 said something, or ended, that is still to be read
	term()                         // TERM to the command and its descendants
	kill()                         // KILL to everything
}

// course is the way of one process that is first the jail's program, then stage 2 and
// then the command, all with one number, and whose end shows before it is reaped: so it
// is on macOS.
type course struct {
	run    *Run
	means  means
	said   <-chan said
	zombie <-chan struct{} // closed: it has ended and is not reaped yet

	report     *spec.Report
	allowed    bool             // stage 2 was told to execute the command
	ended      bool             // fd 4 has, after that: by execve(2), or because it died
	executed   bool             // the command's image runs, or ran
	again      <-chan time.Time // look again which of both it was
	fail       *Error
	cause      error // fd 4 ended or broke before the command ran
	over       bool  // the process has ended
	termWanted bool
	overdue    bool // the launch bound has passed once
	stuck      bool
	stopped    Reason
	onReport   func()
}

// lookEvery is how often a process that has closed fd 4 is looked at: the kernel is
// between closing it and saying that the new image runs, or that the process has ended.
const lookEvery = time.Millisecond

// watch waits for the command, launched or not, to be over. It is the only place that
// decides which signal is sent when.
func (c *course) watch() {
	d := &due{launch: newAlarm(LaunchBound), stop: c.run.stop}
	defer d.end()
	zombie := c.zombie
	for c.fail == nil && (!c.over || !c.executed) {
		select {
		case m := <-c.said:
			c.hear(m)
		case <-zombie:
			zombie = nil
			c.onEnd(d)
		case <-c.again:
			c.look()
		case <-d.silent:
			c.onSilence(d)
		case <-d.launch.c():
			if d.launch.rang() {
				c.onLaunchBound(d)
			}
		case <-d.stop:
			c.onStop(d)
		case <-d.grace.c():
			if d.grace.rang() {
				c.onGrace(d)
			}
		case <-d.bound.c():
			if d.bound.rang() {
				c.onBound()
				return
			}
		}
	}
}

func (c *course) hear(m said) {
	switch {
	case errors.Is(m.err, errEndOfReport) && c.allowed:
		c.ended = true
		c.look()
	case m.err != nil:
		c.silence(m.err)
	case m.Failure != nil:
		c.fail = failed(m.Failure)
	case m.Report != nil && c.report == nil:
		c.report = m.Report
		if c.onReport != nil {
			c.onReport()
		}
		c.proceed()
	}
}

// proceed tells stage 2 to execute the command. A stop that has come meanwhile finds one
// that never ran: stage 2 would take the TERM that is meant for it.
func (c *course) proceed() {
	if why := c.run.stopReason(); why != NotStopped {
		c.stopped, c.fail = why, spawnFailed("stopped before the command ran")
		return
	}
	var err error
	if c.allowed, err = c.means.allow(); err != nil {
		c.fail = spawnFailed("%v", err)
	}
}

// look learns whether the command runs. Of a process that has ended, it knows.
func (c *course) look() {
	c.again = nil
	gone := c.gone() // before the question: nothing is executed after it
	switch {
	case c.executed || c.fail != nil:
	case c.means.ran():
		c.executed = true
		if c.termWanted {
			c.climb()
		}
	case !c.ended: // a failure may still be heard
	case gone:
		c.silence(errEndOfReport)
	default:
		c.again = time.After(lookEvery)
	}
}

// silence is a launch that ended without a word of why.
func (c *course) silence(cause error) { c.cause, c.fail = cause, spawnFailed("stage2: %v", cause) }

// gone says whether the process has ended.
func (c *course) gone() bool {
	select {
	case <-c.zombie:
		return true
	default:
		return false
	}
}

// onEnd notes the process's end.
func (c *course) onEnd(d *due) {
	c.over = true
	if c.allowed {
		c.look()
	}
	if !c.executed {
		d.silent = time.After(DrainBound) // fd 4 ends with it, unless a stray holds it
	}
}

func (c *course) onSilence(d *due) {
	switch {
	case c.executed:
	case c.means.unheard(): // this helper was late, not fd 4
		d.silent = time.After(DrainBound / 10)
	default:
		c.silence(errEndOfReport)
	}
}

// onLaunchBound ends a launch that takes for ever.
func (c *course) onLaunchBound(d *due) {
	what := "stage 2 said nothing"
	switch {
	case c.executed:
		return
	case !c.overdue && c.means.unheard(): // this helper got no processor
		c.overdue = true
		d.launch = newAlarm(LaunchBound)
		return
	case c.allowed:
		what = "stage 2 reported but did not execute the command"
	case c.report != nil:
		what = "stage 2 reported but could not be told to execute the command"
	}
	c.fail = spawnFailed("cannot start the jail: %s within %v; see whether this host is overloaded", what, LaunchBound)
}

// onStop begins the ladder: TERM, once there is a command, and after Grace KILL.
func (c *course) onStop(d *due) {
	d.stop, c.termWanted = nil, true
	if c.executed {
		c.climb()
	}
	d.grace = newAlarm(Grace)
}

// climb takes the ladder's first step. A command that ended before any signal was
// not stopped by anyone.
func (c *course) climb() {
	c.termWanted = false
	if !c.gone() {
		c.stopped = c.run.stopReason()
		c.means.term()
	}
}

// onGrace is the end of the time that a command has to follow TERM.
func (c *course) onGrace(d *due) {
	if !c.gone() {
		c.stopped = c.run.stopReason()
		c.means.kill()
	}
	d.bound = newAlarm(KillBound)
}

// onBound is the end of the time that a killed process has to die.
func (c *course) onBound() {
	c.stuck = !c.gone()
	if c.allowed {
		c.look() // the last word on whether it ran
	}
	if !c.executed && c.fail == nil {
		c.silence(errEndOfReport)
	}
}

// failed puts a step that failed inside the jail into the caller's words.
func failed(f *spec.Failure) *Error {
	if f.Step == spec.StepSeatbelt {
		return spawnFailed("seatbelt: %s", stepText(f))
	}
	return stepFailed(f)
}
