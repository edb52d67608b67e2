package jail

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// event is one thing that fd 4 said.
type event struct {
	message
	err error
}

// listen reads fd 4 until its end.
func (s *supervision) listen() {
	defer close(s.heard)
	defer s.p.report.Close()
	buf := letters.get()
	defer letters.put(buf)
	broken := false // stage 2 did not read the word
	for {
		m, err := receive(s.p.report, buf)
		switch {
		case errors.Is(err, unix.ECONNRESET) && !broken: // told first, whatever was sent before (unix(7))
			broken = true
			continue
		case errors.Is(err, errEndOfReport) && broken:
			err = unix.ECONNRESET
		}
		select {
		case s.events <- event{m, err}:
		case <-s.quit:
			m.close()
			return
		}
		if err != nil {
			return
		}
	}
}

// askEvery is how often the payload is looked at where there is no waiting for it.
const askEvery = 10 * time.Millisecond

// look waits for the end of the payload on its pidfd. A wait that fails is no end: the
// pidfd itself is asked then.
func (s *supervision) look() {
	defer close(s.looked)
	for err := s.p.waiter.Wait(); err != nil && !exited(s.p.payloadFD); {
		select {
		case <-s.quit:
			return
		case <-time.After(askEvery):
		}
	}
	close(s.gone)
}

// hush joins what listens, and gives back what it heard too late.
func (s *supervision) hush() {
	close(s.quit)
	_ = s.p.report.SetReadDeadline(time.Unix(1, 0))
	<-s.heard
	if s.p.waiter != nil {
		s.p.waiter.Interrupt()
		defer s.p.waiter.Close()
	}
	for _, joined := range []chan struct{}{s.looked, s.harvested} {
		if joined != nil {
			<-joined
		}
	}
	for {
		select {
		case ev := <-s.events:
			ev.close()
		default:
			return
		}
	}
}

func (s *supervision) unheard() bool { return unheard(s.p.report, len(s.events)) }
