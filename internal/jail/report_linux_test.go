package jail

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// listening is a supervision that hears fd 4, and the other end of it.
func listening(t *testing.T) (*supervision, int) {
	t.Helper()
	ours, theirs, err := reportSocket()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{report: ours, exit: make(chan *os.ProcessState, 1), initFD: -1, payloadFD: -1, table: -1}
	s := newSupervision(newRun(Request{}, nil), &Host{}, p)
	go s.listen()
	fd, err := unix.Dup(int(theirs.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	return s, fd
}

// Whatever comes over fd 4, nothing hangs and no descriptor stays.
func TestHostileReports(t *testing.T) {
	report := spec.Report{}.Append(nil)
	fail := spec.Failure{Step: spec.StepExec, Msg: "no"}.Append(nil)
	for _, tc := range []struct {
		name     string
		messages [][]byte
		rights   int // descriptors sent along
		open     bool
		heard    int // events read before the end of interest
	}{
		{"nothing", nil, 0, false, 1},
		{"junk", [][]byte{[]byte("junk")}, 0, false, 1},
		{"a report", [][]byte{report}, 0, false, 2},
		{"a report, nobody listens", [][]byte{report}, 0, false, 0},
		{"many reports, nobody listens", [][]byte{report, report, report, report, report, report, report, report}, 0, true, 0},
		{"many failures", [][]byte{fail, fail, fail, fail, fail, fail, fail}, 0, true, 3},
		{"held open", [][]byte{report}, 0, true, 1},
		{"descriptors", [][]byte{report, fail}, 20, true, 2},
		{"descriptors with junk", [][]byte{[]byte("junk")}, 40, true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			testenv.NoNewFDs(t)
			s, peer := listening(t)
			var oob []byte
			if tc.rights > 0 {
				fds := make([]int, tc.rights)
				for i := range fds {
					fds[i] = peer
				}
				oob = unix.UnixRights(fds...)
			}
			for _, m := range tc.messages {
				if err := unix.Sendmsg(peer, m, oob, nil, 0); err != nil {
					t.Fatal(err)
				}
			}
			if !tc.open {
				unix.Close(peer)
			}
			for range tc.heard {
				ev := <-s.events
				if ev.err == nil && ev.pid != os.Getpid() {
					t.Errorf("the sender is %d", ev.pid)
				}
				ev.close()
			}
			s.hush()
			if tc.open {
				unix.Close(peer)
			}
		})
	}
}

// The messages that stage 2 sends, and what a second of them is worth.
func TestReceive(t *testing.T) {
	testenv.NoNewFDs(t)
	s, peer := listening(t)
	_ = unix.Sendto(peer, spec.Report{}.Append(nil), 0, nil)
	s.onEvent(<-s.events)
	if s.report == nil || s.p.payload != os.Getpid() || s.executed {
		t.Errorf("got %+v, payload %d", s.report, s.p.payload)
	}
	first, fd := s.report, s.p.payloadFD
	_ = unix.Sendto(peer, spec.Report{}.Append(nil), 0, nil)
	s.onEvent(<-s.events)
	if s.report != first || s.p.payloadFD != fd || s.fail != nil {
		t.Error("a second report counts")
	}
	var word [2]byte
	if n, err := unix.Read(peer, word[:]); n != 1 || err != nil || word[0] != spec.Go {
		t.Errorf("stage 2 hears %q, %v", word[:max(n, 0)], err)
	}
	unix.Close(peer)
	s.onEvent(<-s.events)
	if !s.executed || s.fail != nil {
		t.Errorf("the end of fd 4 after a report: %v", s.fail)
	}
	s.hush()
	if fd >= 0 {
		unix.Close(fd)
	}
}

// A stage 2 that dies after its report, but before it was told to execute the command,
// has executed none.
func TestDeathAfterTheReport(t *testing.T) {
	for _, when := range []string{"before the word", "with the word unread"} {
		t.Run(when, func(t *testing.T) {
			testenv.NoNewFDs(t)
			s, peer := listening(t)
			_ = unix.Sendto(peer, spec.Report{}.Append(nil), 0, nil)
			report := <-s.events
			if when == "before the word" {
				unix.Close(peer)
				s.onEvent(report)
			} else {
				s.onEvent(report)
				unix.Close(peer)
			}
			s.onEvent(<-s.events)
			if s.executed || s.fail == nil || s.cause != errEndOfReport {
				t.Errorf("executed %v, %v", s.executed, s.fail)
			}
			s.hush()
			if s.p.payloadFD >= 0 {
				unix.Close(s.p.payloadFD)
			}
		})
	}
}

// A command whose end could not be waited for is not told to run.
func TestReportOutOfDescriptors(t *testing.T) {
	testenv.NoNewFDs(t)
	s, peer := listening(t)
	_ = unix.Sendto(peer, spec.Report{}.Append(nil), 0, nil)
	report := <-s.events
	if report.pidfd < 0 {
		t.Skip("needs SCM_PIDFD (Linux 6.5)")
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	s.onEvent(report)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if s.allowed || s.fail == nil || s.looked != nil || s.p.payloadFD != report.pidfd {
		t.Errorf("allowed %v, %v, payload %d", s.allowed, s.fail, s.p.payloadFD)
	}
	s.hush()
	unix.Close(peer)
	unix.Close(report.pidfd)
}

// A command that was cancelled before its stage 2 had reported is not told to run.
func TestStopBeforeTheReport(t *testing.T) {
	testenv.NoNewFDs(t)
	s, peer := listening(t)
	s.run.Stop(Cancelled)
	s.termWanted = true
	_ = unix.Sendto(peer, spec.Report{}.Append(nil), 0, nil)
	s.onEvent(<-s.events)
	if s.allowed || s.fail == nil || s.stopped != Cancelled {
		t.Errorf("allowed %v, stopped %d, %v", s.allowed, s.stopped, s.fail)
	}
	s.hush()
	unix.Close(peer)
	if s.p.payloadFD >= 0 {
		unix.Close(s.p.payloadFD)
	}
}

// A process that keeps the message pipe open does not hold its reader.
func TestMessagesAreBounded(t *testing.T) {
	testenv.NoNewFDs(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	m := collect(r)
	if _, err := w.WriteString("bwrap: \x1b[1mno\xff\nluck "); err != nil {
		t.Fatal(err)
	}
	if got := m.line(); got != "bwrap: [1mno luck" {
		t.Errorf("got %q", got)
	}
	m.end(0)
}

// A pipe that its reader gave up does not kill the writer's side either.
func TestPumpDrain(t *testing.T) {
	for _, tc := range []struct {
		name      string
		write     int  // bytes before the end
		hold      bool // a survivor keeps the pipe
		flood     bool // and writes
		cap       uint64
		sent      uint64
		truncated bool
	}{
		{"a tail", 60000, false, false, 0, 60000, false},
		{"nothing", 0, false, false, 0, 0, false},
		{"held", 10000, true, false, 0, 10000, true},
		{"held, capped", 10000, true, false, 9999, 9999, true},
		{"capped exactly", 10000, false, false, 10000, 10000, false},
		{"flooded", 5000, true, true, 5000, 5000, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			testenv.NoNewFDs(t)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			out := &counting{}
			p := newPump("stdout", r, out, tc.cap)
			if _, err := w.Write(make([]byte, tc.write)); err != nil {
				t.Fatal(err)
			}
			if !tc.hold {
				w.Close()
			}
			flooded := make(chan struct{})
			go func() {
				defer close(flooded)
				for tc.flood {
					if _, err := w.Write(make([]byte, 4096)); err != nil {
						return
					}
				}
			}()
			p.finish()
			p.run()
			if tc.hold {
				w.Close()
			}
			<-flooded
			if p.sent != tc.sent || p.truncated != tc.truncated || out.n != tc.sent {
				t.Errorf("sent %d (%d), truncated %v", p.sent, out.n, p.truncated)
			}
		})
	}
}

type counting struct {
	n   uint64
	err error
}

func (c *counting) Output(_ protocol.Stream, data []byte, _ uint64, _ bool) error {
	if c.err == nil {
		c.n += uint64(len(data))
	}
	return c.err
}

// A sink that fails does not stop the reading: the command must not block.
func TestPumpWithoutSink(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := newPump("stdout", r, &counting{err: errors.New("gone")}, 0)
	go p.run()
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	w.Close()
	<-p.done
	if p.sent != 0 || p.truncated {
		t.Errorf("sent %d, truncated %v", p.sent, p.truncated)
	}
}

// Data that the command left in the pipe is read however late the reader comes.
func TestPumpReadsALateTail(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	slow := &sluggish{}
	p := newPump("stdout", r, slow, 0)
	_, _ = w.Write(make([]byte, 60000))
	p.finish()
	p.run()
	if p.sent != 60000 {
		t.Errorf("sent %d", p.sent)
	}
}

// sluggish is a broker that takes its time; the drain bound does not count it.
type sluggish struct{}

func (*sluggish) Output(protocol.Stream, []byte, uint64, bool) error {
	time.Sleep(2 * DrainBound / 10)
	return nil
}
