package jail

import "time"

// hands is what the ladder does to processes, and what it asks of them.
type hands interface {
	over() bool    // the command is known and has ended
	term()         // TERM to the command and its descendants
	kill()         // KILL to everything
	unheard() bool // fd 4 said something, or ended, that is still to be read
}

// watch waits for the command, launched or not, to be over. It is the only place
// that decides which signal is sent when.
func (s *supervision) watch() {
	d := &due{launch: newAlarm(s.launchBound()), stop: s.run.stop}
	defer d.end()
	var gone <-chan struct{}
	for s.fail == nil {
		if s.executed {
			gone = s.gone
			if s.reaped && s.p.payloadFD < 0 {
				return
			}
		}
		select {
		case ev := <-s.events:
			s.onEvent(ev)
			if s.executed && s.termWanted {
				s.climb()
			}
		case <-s.again:
			s.allow()
		case s.state = <-s.p.exit:
			s.onReaped(d)
		case <-gone:
			return
		case <-d.silent:
			s.onSilence(d)
		case <-d.launch.c():
			if d.launch.rang() {
				s.onLaunchBound(d)
			}
		case <-d.stop:
			s.onStop(d)
		case <-d.grace.c():
			if d.grace.rang() {
				s.onGrace(d)
			}
		case <-d.bound.c():
			if d.bound.rang() {
				s.stuck = !s.hands.over()
				return
			}
		}
	}
}

// onReaped notes the scaffolding's end.
func (s *supervision) onReaped(d *due) {
	s.reaped = true
	if !s.executed {
		d.silent = time.After(DrainBound) // fd 4 ends with the jail, unless a stray holds it
	}
	if s.executed && s.p.payloadFD >= 0 && !s.hands.over() {
		s.hands.kill() // the jail collapses with its supervisor
		d.bound = newAlarm(KillBound)
	}
}

// onSilence ends a launch whose scaffolding has ended without a word.
func (s *supervision) onSilence(d *due) {
	switch {
	case s.executed:
	case s.hands.unheard(): // this helper was late, not fd 4
		d.silent = time.After(DrainBound / 10)
	default:
		s.cause, s.fail = errEndOfReport, spawnFailed("stage2: %v", errEndOfReport)
	}
}

func (s *supervision) onLaunchBound(d *due) {
	if !s.executed && !s.overdue && s.hands.unheard() { // this helper got no processor
		s.overdue = true
		d.launch = newAlarm(s.launchBound())
		return
	}
	s.tooLate()
}

// onStop begins the ladder: TERM, and after Grace KILL.
func (s *supervision) onStop(d *due) {
	d.stop, s.termWanted = nil, true
	if s.executed {
		s.climb()
	}
	d.grace = newAlarm(Grace)
}

// onGrace is the end of the time that a command has to follow TERM.
func (s *supervision) onGrace(d *due) {
	if !s.hands.over() {
		s.stopped = s.run.stopReason()
	}
	s.hands.kill()
	d.bound = newAlarm(KillBound)
}

// climb takes the ladder's first step. A command that ended before any signal was
// not stopped by anyone.
func (s *supervision) climb() {
	s.termWanted = false
	if s.hands.over() {
		return
	}
	s.stopped = s.run.stopReason()
	s.hands.term()
}
