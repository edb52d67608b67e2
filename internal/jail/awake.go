package jail

import "time"

// A helper that is stopped, or whose machine is, finds every bound expired when it goes
// on: the command had no time, or what it did was not heard yet. So the bounds after
// which something is claimed or given up count only time in which this process ran.
// wall_s is none of them: it is wall clock time.

// Such a bound is waited for in slices. What one took beyond maxAwake was a stop.
const (
	awakeSlice = 250 * time.Millisecond
	maxAwake   = time.Second
)

// patience is a bound for a loop that asks more often than every maxAwake.
type patience struct {
	left time.Duration
	at   time.Time
}

func newPatience(d time.Duration) *patience { return &patience{d, time.Now()} }

// over takes the time since the last call off.
func (p *patience) over() bool {
	now := time.Now()
	p.left, p.at = p.left-min(now.Sub(p.at), maxAwake), now
	return p.left <= 0
}

// alarm is a bound for a select.
type alarm struct {
	patience
	timer *time.Timer
}

func newAlarm(d time.Duration) *alarm {
	return &alarm{*newPatience(d), time.NewTimer(min(d, awakeSlice))}
}

// c is nil, for ever silent, without an alarm. What comes there is to be followed by a
// call of rang.
func (a *alarm) c() <-chan time.Time {
	if a == nil {
		return nil
	}
	return a.timer.C
}

// rang says whether the bound is over, or else sets the alarm again.
func (a *alarm) rang() bool {
	if a.over() {
		return true
	}
	a.timer.Reset(min(a.left, awakeSlice))
	return false
}

func (a *alarm) stop() {
	if a != nil {
		a.timer.Stop()
	}
}

// Within waits for done to be closed, at most d of the time in which this process runs.
func Within(d time.Duration, done <-chan struct{}) bool {
	a := newAlarm(d)
	defer a.stop()
	for {
		select {
		case <-done:
			return true
		case <-a.c():
			if a.rang() {
				select {
				case <-done:
					return true
				default:
					return false
				}
			}
		}
	}
}

// due is what a watch waits for besides what processes do.
type due struct {
	launch, grace, bound *alarm
	silent               <-chan time.Time // fd 4 should have ended
	stop                 <-chan struct{}
}

func (d *due) end() {
	for _, a := range []*alarm{d.launch, d.grace, d.bound} {
		a.stop()
	}
}
