package jail

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sandboxd/internal/stage2/spec"
)

// fakeHands is a command that reacts to signals as told. The ladder is tested under
// a fake clock: nothing sleeps.
type fakeHands struct {
	s      *supervision
	dead   bool
	waits  bool // something to hear on fd 4
	onTerm func()
	onKill func()
	began  time.Time
	terms  []time.Duration
	kills  []time.Duration
}

func (h *fakeHands) over() bool    { return h.dead }
func (h *fakeHands) unheard() bool { return h.waits }
func (h *fakeHands) term()         { h.terms = append(h.terms, time.Since(h.began)); h.do(h.onTerm) }
func (h *fakeHands) kill()         { h.kills = append(h.kills, time.Since(h.began)); h.do(h.onKill) }

func (h *fakeHands) do(f func()) {
	if f != nil {
		f()
	}
}

// die is the end of the payload, as its pidfd shows it.
func (h *fakeHands) die() {
	if !h.dead {
		h.dead = true
		close(h.s.gone)
	}
}

func newFake() (*Run, *supervision, *fakeHands) {
	r := newRun(Request{}, nil)
	p := &process{pid: 1 << 30, jailed: true, exit: make(chan *os.ProcessState, 1), initFD: -1, payloadFD: -1, table: -1}
	s := newSupervision(r, &Host{}, p)
	h := &fakeHands{s: s, began: time.Now()}
	s.hands = h
	return r, s, h
}

func (h *fakeHands) launched() {
	h.s.report = &spec.Report{}
	h.s.executed = true
	h.s.p.payloadFD = 1 << 20 // no such descriptor; only its sign counts here
}

func TestLadder(t *testing.T) {
	for _, tc := range []struct {
		name    string
		prepare func(r *Run, s *supervision, h *fakeHands)
		terms   []time.Duration
		kills   []time.Duration
		stopped Reason
		stuck   bool
		fail    string
		took    time.Duration
	}{
		{name: "ends by itself", took: time.Minute,
			prepare: func(r *Run, _ *supervision, h *fakeHands) {
				h.launched()
				time.AfterFunc(time.Minute, h.die)
			}},
		{name: "a handler that takes a second", took: time.Second, stopped: Cancelled, terms: []time.Duration{0},
			prepare: func(r *Run, _ *supervision, h *fakeHands) {
				h.launched()
				h.onTerm = func() { time.AfterFunc(time.Second, h.die) }
				r.Stop(Cancelled)
			}},
		{name: "TERM is ignored", took: Grace, stopped: Cancelled, terms: []time.Duration{0}, kills: []time.Duration{Grace},
			prepare: func(r *Run, _ *supervision, h *fakeHands) {
				h.launched()
				h.onKill = h.die
				r.Stop(Cancelled)
			}},
		{name: "the deadline counts, not the cancel after it", took: 10*time.Second + Grace, stopped: Deadline,
			terms: []time.Duration{10 * time.Second}, kills: []time.Duration{10*time.Second + Grace},
			prepare: func(r *Run, _ *supervision, h *fakeHands) {
				h.launched()
				h.onKill = h.die
				time.AfterFunc(10*time.Second, func() { r.Stop(Deadline) })
				time.AfterFunc(11*time.Second, func() { r.Stop(Cancelled) })
			}},
		{name: "KILL does not help", took: Grace + KillBound, stopped: Cancelled, stuck: true,
			terms: []time.Duration{0}, kills: []time.Duration{Grace},
			prepare: func(r *Run, _ *supervision, h *fakeHands) {
				h.launched()
				r.Stop(Cancelled)
			}},
		{name: "it ended before the cancel", took: 0,
			prepare: func(r *Run, _ *supervision, h *fakeHands) {
				h.launched()
				h.die()
				r.Stop(Cancelled)
			}},
		{name: "cancel before the report, which comes late", took: 3 * time.Second / 2, stopped: Cancelled, terms: []time.Duration{time.Second},
			prepare: func(r *Run, s *supervision, h *fakeHands) {
				r.Stop(Cancelled)
				h.onTerm = func() { time.AfterFunc(time.Second/2, h.die) }
				time.AfterFunc(time.Second, func() {
					s.report, s.allowed, s.p.payloadFD = &spec.Report{}, true, 1<<20
					s.events <- event{noMessage, errEndOfReport}
				})
			}},
		{name: "cancel before a report that never comes", took: Grace, stopped: Cancelled, kills: []time.Duration{Grace}, fail: "end of fd 4",
			prepare: func(r *Run, s *supervision, h *fakeHands) {
				r.Stop(Cancelled)
				h.onKill = func() { s.events <- event{noMessage, errEndOfReport} }
			}},
		{name: "a jail that says nothing", took: LaunchBound, fail: "said nothing",
			prepare: func(*Run, *supervision, *fakeHands) {}},
		{name: "a stage 2 that stops after its report", took: LaunchBound, fail: "did not execute",
			prepare: func(_ *Run, s *supervision, _ *fakeHands) { s.report, s.allowed = &spec.Report{}, true }},
		{name: "an init that does not settle", took: LaunchBound, fail: "did not settle",
			prepare: func(_ *Run, s *supervision, _ *fakeHands) { s.report = &spec.Report{} }},
		{name: "a slow command is not a slow launch", took: 2 * LaunchBound,
			prepare: func(_ *Run, _ *supervision, h *fakeHands) {
				h.launched()
				time.AfterFunc(2*LaunchBound, h.die)
			}},
		{name: "the scaffolding dies and a stray holds fd 4", took: time.Second + DrainBound, fail: "end of fd 4",
			prepare: func(_ *Run, s *supervision, _ *fakeHands) {
				time.AfterFunc(time.Second, func() { s.p.exit <- nil })
			}},
		{name: "the scaffolding ends and the helper hears seconds later that the command ran", took: 5 * time.Second,
			prepare: func(_ *Run, s *supervision, h *fakeHands) {
				s.report, s.allowed, s.p.payloadFD, h.waits = &spec.Report{}, true, 1<<20, true
				s.p.exit <- nil
				time.AfterFunc(5*time.Second, func() { h.die(); s.events <- event{noMessage, errEndOfReport} })
			}},
		{name: "a helper that was stopped beyond the launch bound", took: LaunchBound + time.Second,
			prepare: func(_ *Run, s *supervision, h *fakeHands) {
				s.report, s.allowed, s.p.payloadFD, h.waits = &spec.Report{}, true, 1<<20, true
				time.AfterFunc(LaunchBound+time.Second, func() { h.die(); s.events <- event{noMessage, errEndOfReport} })
			}},
		{name: "a stage 2 that never falls silent", took: 2 * LaunchBound, fail: "did not execute",
			prepare: func(_ *Run, s *supervision, h *fakeHands) {
				s.report, s.allowed, h.waits = &spec.Report{}, true, true
			}},
		{name: "the scaffolding dies under the command", took: time.Second, kills: []time.Duration{time.Second},
			prepare: func(_ *Run, s *supervision, h *fakeHands) {
				h.launched()
				h.onKill = h.die
				time.AfterFunc(time.Second, func() { s.p.exit <- nil })
			}},
		{name: "a broken fd 4", took: 0, fail: "junk",
			prepare: func(_ *Run, s *supervision, _ *fakeHands) { s.events <- event{noMessage, errors.New("junk")} }},
		{name: "a failure after the report", took: 0, fail: "no such file",
			prepare: func(_ *Run, s *supervision, _ *fakeHands) {
				s.report = &spec.Report{}
				m := noMessage
				m.Failure = &spec.Failure{Step: spec.StepExec, Msg: "no such file"}
				s.events <- event{m, nil}
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, s, h := newFake()
				tc.prepare(r, s, h)
				s.watch()
				if took := time.Since(h.began); took != tc.took {
					t.Errorf("took %v, expected %v", took, tc.took)
				}
				if !same(h.terms, tc.terms) || !same(h.kills, tc.kills) {
					t.Errorf("TERM at %v, KILL at %v, expected %v and %v", h.terms, h.kills, tc.terms, tc.kills)
				}
				if s.stopped != tc.stopped || s.stuck != tc.stuck {
					t.Errorf("stopped %d stuck %v", s.stopped, s.stuck)
				}
				if (s.fail == nil) != (tc.fail == "") || s.fail != nil && !strings.Contains(s.fail.Msg, tc.fail) {
					t.Errorf("got %v, expected %q", s.fail, tc.fail)
				}
			})
		})
	}
}

func same(a, b []time.Duration) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// wall_s counts from the acceptance and stops once.
func TestDeadlineTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRun(Request{}, nil)
		r.req.Policy.Limits.WallSeconds = 5
		defer r.deadline().Stop()
		time.Sleep(5*time.Second - 1)
		synctest.Wait()
		if r.stopReason() != NotStopped {
			t.Error("too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if r.stopReason() != Deadline {
			t.Error("too late")
		}
		r.Stop(Cancelled)
		if r.stopReason() != Deadline || r.wall() != 5000 {
			t.Errorf("got %d, %d ms", r.stopReason(), r.wall())
		}
	})
	for _, wall := range []uint64{0, 1 << 40, 1<<63 - 1} {
		r := newRun(Request{}, nil)
		r.req.Policy.Limits.WallSeconds = wall
		if timer := r.deadline(); timer != nil {
			timer.Stop()
			if wall == 0 {
				t.Error("no deadline became one")
			}
		}
		if r.stopReason() != NotStopped {
			t.Errorf("%d s are over at once", wall)
		}
	}
}
