package jail

import (
	"io"
	"os"
	"strings"
	"time"

	"sandboxd/internal/stage2/spec"
)

// maxMessages bounds what is kept of the scaffolding's own messages, in bytes.
const maxMessages = 4 << 10

// messages collects what bubblewrap printed. It reads to the end, so that a full
// pipe never holds the scaffolding up.
type messages struct {
	src  *os.File
	text []byte
	done chan struct{}
}

func collect(src *os.File) *messages {
	m := &messages{src: src, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		defer src.Close()
		m.text, _ = io.ReadAll(io.LimitReader(src, maxMessages))
		_, _ = io.Copy(io.Discard, src)
	}()
	return m
}

// end joins the reader. A process that still holds the pipe gets no more than
// wait to say something.
func (m *messages) end(wait time.Duration) {
	_ = m.src.SetReadDeadline(time.Now().Add(wait))
	<-m.done
}

// line is the text as one printable line.
func (m *messages) line() string {
	m.end(DrainBound)
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(m.text), " "))
	return strings.Join(strings.Fields(clean), " ")
}

// failure puts a step that failed inside the jail into the caller's words.
func (s *supervision) failure(f *spec.Failure) *Error {
	switch f.Step {
	case spec.StepNamespaces, spec.StepPrivileges, spec.StepView:
		return spawnFailed("bwrap: %s; see whether %s is bubblewrap", stepText(f), s.host.Facts.Bwrap.Path)
	}
	return stepFailed(f)
}

// silence explains an end of fd 4 without a report, once everything is reaped.
func (s *supervision) silence(cause error, text string) *Error {
	if cause != errEndOfReport {
		return spawnFailed("stage2: cannot read its report: %v", cause)
	}
	how := "ended"
	if s.state != nil {
		how = s.state.String()
	}
	who := "stage2"
	if s.p.jailed {
		who = "bwrap"
	}
	if text != "" {
		how += ": " + text
	}
	return spawnFailed("%s: the jail ended before the command could start (%s); `sandboxd doctor` says what this host lacks", who, how)
}
