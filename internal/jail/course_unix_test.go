//go:build linux || darwin

package jail

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/stage2/spec"
)

// fakeMeans is a process that reacts as told, under a fake clock.
type fakeMeans struct {
	says    chan said
	zombie  chan struct{}
	image   atomic.Bool // a program was executed
	waits   bool
	deaf    bool // the word does not reach it
	noWatch error
	onWord  func()
	onTerm  func()
	onKill  func()
	did     []string
	began   time.Time
}

func (m *fakeMeans) allow() (bool, error) {
	if m.noWatch != nil || m.deaf {
		return false, m.noWatch
	}
	m.note("word", m.onWord)
	return true, nil
}
func (m *fakeMeans) ran() bool     { return m.image.Load() }
func (m *fakeMeans) unheard() bool { return m.waits || len(m.says) > 0 }
func (m *fakeMeans) term()         { m.note("TERM", m.onTerm) }
func (m *fakeMeans) kill()         { m.note("KILL", m.onKill) }

func (m *fakeMeans) note(what string, then func()) {
	m.did = append(m.did, what+" "+time.Since(m.began).String())
	if then != nil {
		then()
	}
}

func (m *fakeMeans) report()  { m.says <- said{Message: spec.Message{Report: &spec.Report{}}} }
func (m *fakeMeans) end()     { m.says <- said{err: errEndOfReport} }
func (m *fakeMeans) die()     { close(m.zombie) }
func (m *fakeMeans) execute() { m.image.Store(true); m.end() }

func (m *fakeMeans) after(d time.Duration, f func()) func() { return func() { time.AfterFunc(d, f) } }

// What ended is a command only where the kernel says that one was executed, and a signal
// for a command comes neither to stage 2 nor to nobody.
func TestCourse(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name     string
		script   func(r *Run, m *fakeMeans)
		executed bool
		stopped  Reason
		fail     string // in the error; "" none
		silent   bool   // fd 4 ended without a word
		stuck    bool
		did      string
		took     time.Duration
	}{
		{name: "a command that ends", executed: true, did: "word 0s", took: time.Minute,
			script: func(_ *Run, m *fakeMeans) {
				m.onWord = func() { m.execute(); time.AfterFunc(time.Minute, m.die) }
				m.report()
			}},
		{name: "a command that has ended before this helper looks", executed: true, did: "word 0s",
			script: func(_ *Run, m *fakeMeans) {
				m.onWord = func() { m.execute(); m.die() }
				m.report()
			}},
		{name: "the kernel says so a moment after fd 4", executed: true, did: "word 0s", took: time.Second,
			script: func(_ *Run, m *fakeMeans) {
				m.onWord = func() {
					m.end()
					time.AfterFunc(50*ms, func() { m.image.Store(true) })
					time.AfterFunc(time.Second, m.die)
				}
				m.report()
			}},
		{name: "a stray holds fd 4", executed: true, did: "word 0s", took: time.Second,
			script: func(_ *Run, m *fakeMeans) {
				m.onWord = func() { m.image.Store(true); time.AfterFunc(time.Second, m.die) }
				m.report()
			}},
		{name: "killed before its report", fail: "end of fd 4", silent: true,
			script: func(_ *Run, m *fakeMeans) { m.end(); m.die() }},
		{name: "killed between the report and the word", fail: "end of fd 4", silent: true,
			script: func(_ *Run, m *fakeMeans) { m.deaf = true; m.report(); m.end(); m.die() }},
		{name: "killed between the word and execve, fd 4 first", fail: "end of fd 4", silent: true, did: "word 0s", took: 19 * ms,
			script: func(_ *Run, m *fakeMeans) {
				m.onWord = func() { m.end(); time.AfterFunc(19*ms+lookEvery/2, m.die) }
				m.report()
			}},
		{name: "killed there, a stray holds fd 4", fail: "end of fd 4", silent: true, did: "word 0s", took: DrainBound,
			script: func(_ *Run, m *fakeMeans) { m.onWord = m.die; m.report() }},
		{name: "the exec fails", fail: "exec: no", did: "word 0s",
			script: func(_ *Run, m *fakeMeans) {
				m.onWord = func() {
					m.says <- said{Message: spec.Message{Failure: &spec.Failure{Step: spec.StepExec, Msg: "no"}}}
					m.end()
					m.die()
				}
				m.report()
			}},
		{name: "the exec fails, and a late helper", fail: "exec: no", did: "word 0s", took: DrainBound,
			script: func(_ *Run, m *fakeMeans) {
				m.waits = true
				m.onWord = func() {
					m.die()
					time.AfterFunc(DrainBound+50*ms, func() {
						m.says <- said{Message: spec.Message{Failure: &spec.Failure{Step: spec.StepExec, Msg: "no"}}}
					})
				}
				m.report()
			}},
		{name: "nobody could tell about execve", fail: "no kqueue",
			script: func(_ *Run, m *fakeMeans) { m.noWatch = errors.New("no kqueue"); m.report() }},
		{name: "it says nothing", fail: "stage 2 said nothing", took: LaunchBound, script: func(*Run, *fakeMeans) {}},
		{name: "it reports and executes nothing", fail: "reported but did not execute", did: "word 0s", took: LaunchBound,
			script: func(_ *Run, m *fakeMeans) { m.report() }},
		{name: "it dies for ever after the word", fail: "reported but did not execute", did: "word 0s", took: LaunchBound,
			script: func(_ *Run, m *fakeMeans) { m.onWord = m.end; m.report() }},
		{name: "stopped before the report", fail: "stopped before", stopped: Cancelled, took: time.Second,
			script: func(r *Run, m *fakeMeans) { r.Stop(Cancelled); time.AfterFunc(time.Second, m.report) }},
		{name: "stopped between the word and execve", executed: true, stopped: Cancelled, did: "word 0s, TERM 40ms", took: 45 * ms,
			script: func(r *Run, m *fakeMeans) {
				m.onWord = func() { time.AfterFunc(10*ms, func() { r.Stop(Cancelled) }); time.AfterFunc(40*ms, m.execute) }
				m.onTerm = m.after(5*ms, m.die)
				m.report()
			}},
		{name: "stopped, a handler that takes a second", executed: true, stopped: Deadline, did: "word 0s, TERM 10ms", took: time.Second + 10*ms,
			script: func(r *Run, m *fakeMeans) {
				m.onWord = func() { m.execute(); time.AfterFunc(10*ms, func() { r.Stop(Deadline) }) }
				m.onTerm = m.after(time.Second, m.die)
				m.report()
			}},
		{name: "stopped, deaf to TERM", executed: true, stopped: Cancelled, did: "word 0s, TERM 10ms, KILL 2.01s", took: Grace + 10*ms,
			script: func(r *Run, m *fakeMeans) {
				m.onWord = func() { m.execute(); time.AfterFunc(10*ms, func() { r.Stop(Cancelled) }) }
				m.onKill = m.die
				m.report()
			}},
		{name: "stopped after its end", executed: true, did: "word 0s",
			script: func(r *Run, m *fakeMeans) {
				m.onWord = func() { m.execute(); m.die(); r.Stop(Cancelled) }
				m.report()
			}},
		{name: "stopped, and nothing ever comes", fail: "end of fd 4", silent: true, stopped: Cancelled, did: "KILL 2s", took: Grace,
			script: func(r *Run, m *fakeMeans) {
				r.Stop(Cancelled)
				m.onKill = func() { m.end(); m.die() }
			}},
		{name: "cannot die", executed: true, stopped: Cancelled, stuck: true, did: "word 0s, TERM 10ms, KILL 2.01s", took: Grace + KillBound + 10*ms,
			script: func(r *Run, m *fakeMeans) {
				m.onWord = func() { m.execute(); time.AfterFunc(10*ms, func() { r.Stop(Cancelled) }) }
				m.report()
			}},
		{name: "cannot die, never reported", fail: "end of fd 4", silent: true, stopped: Cancelled, stuck: true, did: "KILL 2s", took: Grace + KillBound,
			script: func(r *Run, _ *fakeMeans) { r.Stop(Cancelled) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(Request{}, nil)
				m := &fakeMeans{says: make(chan said, 8), zombie: make(chan struct{}), began: time.Now()}
				c := &course{run: r, means: m, said: m.says, zombie: m.zombie}
				tc.script(r, m)
				c.watch()
				took := time.Since(m.began)
				if c.executed != tc.executed || c.stopped != tc.stopped || c.stuck != tc.stuck {
					t.Errorf("executed %t, stopped %d, stuck %t", c.executed, c.stopped, c.stuck)
				}
				if (c.fail != nil) != (tc.fail != "") || c.fail != nil && !strings.Contains(c.fail.Msg, tc.fail) {
					t.Errorf("failed with %v, want %q", c.fail, tc.fail)
				}
				if errors.Is(c.cause, errEndOfReport) != tc.silent {
					t.Errorf("the cause is %v, silent %t", c.cause, tc.silent)
				}
				if did := strings.Join(m.did, ", "); did != tc.did {
					t.Errorf("did %q, want %q", did, tc.did)
				}
				// Bounds are waited for in slices, and a look comes every lookEvery.
				if took < tc.took || took > tc.took+300*ms {
					t.Errorf("took %v, want %v", took, tc.took)
				}
			})
		})
	}
}

// The report is used once, and before anything runs.
func TestCourseReport(t *testing.T) {
	m := &fakeMeans{}
	c := &course{run: newRun(Request{}, nil), means: m, zombie: make(chan struct{})}
	c.onReport = func() { m.did = append(m.did, "profile removed") }
	m.onWord = func() { m.did[len(m.did)-1] = "word" }
	first := &spec.Report{Roots: 1}
	c.hear(said{Message: spec.Message{Report: first}})
	c.hear(said{Message: spec.Message{Report: &spec.Report{Roots: 2}}})
	if c.report != first || !slices.Equal(m.did, []string{"profile removed", "word"}) {
		t.Errorf("report %+v, did %q", c.report, m.did)
	}
}
