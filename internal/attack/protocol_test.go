//go:build linux

package attack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"sandboxd/internal/mpack"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// conversation is one attack by the bytes of the channel. Its control is in the same
// conversation: a heartbeat before it is answered, and where the channel goes on a
// command runs behind it.
type conversation struct {
	name    string
	running bool // while a command runs under id 2, which reads its input and exits with 5
	raw     func(s *scene) []byte
	eof     bool     // the stream ends behind it
	slow    bool     // byte by byte
	flood   bool     // more than the helper keeps answers for: some of them are dropped
	want    []string // "ID KIND", an error with its code, an exit with its status; in any order
	closes  bool     // the channel ends
	status  int      // the helper's exit status then
}

func framed(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }

// envelope is a frame around any body.
func envelope(id uint64, kind string, body []byte) []byte {
	b := mpack.AppendUint(mpack.AppendStr(mpack.AppendMap(nil, 4), "v"), protocol.EnvelopeVersion)
	b = mpack.AppendUint(mpack.AppendStr(b, "id"), id)
	b = mpack.AppendStr(mpack.AppendStr(b, "kind"), kind)
	return framed(append(mpack.AppendStr(b, "body"), body...))
}

var emptyMap = mpack.AppendMap(nil, 0)

// raw is a fixed sequence of frames.
func raw(parts ...[]byte) func(*scene) []byte {
	return func(*scene) []byte { return bytes.Join(parts, nil) }
}

// starting is an exec_start of /bin/true with one thing changed.
func starting(id uint64, change func(b *protocol.ExecStart)) func(*scene) []byte {
	return func(s *scene) []byte {
		b := s.start("/bin/true")
		if change != nil {
			change(&b)
		}
		return frame(id, b)
	}
}

func both(parts ...func(*scene) []byte) func(*scene) []byte {
	return func(s *scene) []byte {
		var all []byte
		for _, p := range parts {
			all = append(all, p(s)...)
		}
		return all
	}
}

var (
	eof    = raw(frame(2, protocol.ExecStdin{EOF: true}))
	cancel = raw(frame(2, protocol.Cancel{}))
	stop   = raw(frame(8, protocol.Shutdown{}))
)

func conversations() []conversation {
	malformed, going := []string{"0 malformed_frame"}, []string{}
	list := []conversation{
		{name: "input before any start", raw: eof, want: []string{"2 no_exec"}},
		{name: "cancel before any start", raw: cancel, want: going},
		{name: "cancel before its start", raw: both(cancel, starting(2, nil)), want: []string{"2 exit 0"}},
		{name: "input before its start", raw: both(eof, starting(2, nil)), want: []string{"2 no_exec", "2 exit 0"}},
		{name: "the greatest id", raw: starting(1<<64-1, nil), want: []string{"18446744073709551615 exit 0"}},
		{name: "id 0", raw: func(s *scene) []byte { return envelope(0, "heartbeat", emptyMap) }, want: malformed, closes: true, status: 1},
		{name: "a second hello", raw: raw(frame(6, protocol.Hello{Proto: protocol.ExecVersion})), want: []string{"6 malformed_frame"}},
		{name: "a second hello of another version", raw: raw(frame(6, protocol.Hello{Proto: 2})), want: []string{"6 proto_mismatch"}, closes: true, status: 1},
		{name: "an empty start", raw: raw(envelope(5, "exec_start", emptyMap)), want: []string{"5 malformed_frame"}},
		{name: "a start of no map", raw: raw(envelope(5, "exec_start", mpack.AppendStr(nil, "x"))), want: malformed, closes: true, status: 1},
		{name: "an argument with NUL", raw: raw(envelope(5, "exec_start", startWith("argv", mpack.AppendStrs(nil, []string{"/bin/true", "a\x00b"})))), want: []string{"5 malformed_frame"}},
		{name: "a directory with NUL", raw: raw(envelope(5, "exec_start", startWith("cwd", mpack.AppendStr(nil, "/tmp\x00/x")))), want: []string{"5 malformed_frame"}},
		{name: "a variable's name with =", raw: raw(envelope(5, "exec_start", startWith("env", append(mpack.AppendMap(nil, 1), mpack.AppendStrs(nil, []string{"A=B", "c"})[1:]...)))), want: []string{"5 malformed_frame"}},
		{name: "300,000 arguments", raw: raw(envelope(5, "exec_start", startWith("argv", mpack.AppendStrs(nil, make([]string, 300_000))))), want: []string{"5 malformed_frame"}},
		{name: "an argument of 3 MiB", raw: starting(5, func(b *protocol.ExecStart) { b.Argv = append(b.Argv, strings.Repeat("x", 3<<20)) }), want: []string{"5 spawn_failed"}},
		{name: "200,000 short arguments", raw: starting(5, func(b *protocol.ExecStart) {
			b.Argv = append(b.Argv, slices.Repeat([]string{strings.Repeat("x", 40)}, 200_000)...)
		}), want: []string{"5 spawn_failed"}},
		{name: "a variable of 3 MiB", raw: starting(5, func(b *protocol.ExecStart) { b.Env["PATH"] = "/usr/bin:" + strings.Repeat("/x", 1<<20) }), want: []string{"5 exit 0"}},
		{name: "a PATH of deep directories", raw: starting(5, func(b *protocol.ExecStart) {
			for n := range 1000 {
				b.Env["PATH"] += fmt.Sprintf(":/x%d", n) + strings.Repeat("/x", 2000)
			}
		}), want: []string{"5 exit 0"}},
		{name: "a program below a million directories", raw: starting(5, func(b *protocol.ExecStart) { b.Argv[0] = strings.Repeat("/x", 1<<20) }), want: []string{"5 spawn_failed"}},
		{name: "a TMPDIR of 2 MiB", raw: starting(5, func(b *protocol.ExecStart) { b.Env["TMPDIR"] = strings.Repeat("/x", 1<<20) }), want: []string{"5 exit 0"}},
		{name: "a directory outside by dots", raw: starting(5, func(b *protocol.ExecStart) { b.Cwd += "/../../../../../../../root" }), want: []string{"5 refused"}},
		{name: "a directory of another process", raw: starting(5, func(b *protocol.ExecStart) { b.Cwd = "/proc/1/root" }), want: []string{"5 refused"}},
		{name: "a longer frame than there is", raw: raw([]byte{1, 0, 0, 1}), want: malformed, closes: true, status: 1},
		{name: "an empty frame", raw: raw([]byte{0, 0, 0, 0}), want: malformed, closes: true, status: 1},
		{name: "half a length and the end", raw: raw([]byte{0, 0}), eof: true, want: malformed, closes: true, status: 1},
		{name: "half a frame and the end", raw: raw(frame(5, protocol.Heartbeat{})[:9]), eof: true, want: malformed, closes: true, status: 1},
		{name: "another protocol", raw: raw([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")), want: malformed, closes: true, status: 1},
		{name: "two maps in one frame", raw: raw(framed(slices.Repeat(frame(5, protocol.Heartbeat{})[4:], 2))), want: malformed, closes: true, status: 1},
		{name: "a frame in a frame", raw: raw(framed(frame(5, protocol.Heartbeat{}))), want: malformed, closes: true, status: 1},
		{name: "a key twice", raw: raw(twice()), want: malformed, closes: true, status: 1},
		{name: "slow loris", raw: starting(2, nil), slow: true, want: []string{"2 exit 0"}},
		{name: "slow loris that gives up", raw: raw(frame(5, protocol.Heartbeat{})[:20]), slow: true, eof: true, want: malformed, closes: true, status: 1},
		{name: "50 heartbeats at once", raw: func(*scene) []byte { return bytes.Repeat(frame(5, protocol.Heartbeat{}), 50) }, want: slices.Repeat([]string{"5 heartbeat"}, 50)},
		{name: "20,000 heartbeats at once", flood: true, raw: func(*scene) []byte { return bytes.Repeat(frame(5, protocol.Heartbeat{}), 20_000) }, want: []string{"5 heartbeat"}},
		{name: "start and cancel at once", raw: both(starting(2, nil), cancel), want: []string{"2 exit"}},
		{name: "start and shutdown at once", raw: both(starting(2, nil), stop), want: []string{"2 exit"}, closes: true},
		{name: "start and the end at once", raw: starting(2, nil), eof: true, want: []string{"2 exit"}, closes: true},
		{name: "shutdown, then a start", raw: both(stop, starting(2, nil)), want: going, closes: true},
		{name: "shutdown, then garbage", raw: both(stop, raw([]byte{0, 0, 0, 1, 0xc1})), want: going, closes: true},
		{name: "two shutdowns", raw: both(stop, stop), want: going, closes: true},
		{name: "the end", raw: raw(), eof: true, want: going, closes: true},

		{name: "a start under the running id", running: true, raw: starting(2, nil), want: []string{"2 busy"}},
		{name: "a start beside", running: true, raw: starting(9, nil), want: []string{"9 busy"}},
		{name: "50 starts beside", running: true, raw: func(s *scene) []byte { return bytes.Repeat(starting(9, nil)(s), 50) }, want: slices.Repeat([]string{"9 busy"}, 50)},
		{name: "a bad start beside", running: true, raw: raw(envelope(9, "exec_start", emptyMap)), want: []string{"9 malformed_frame"}},
		{name: "a hello", running: true, raw: raw(frame(2, protocol.Hello{Proto: protocol.ExecVersion})), want: []string{"2 malformed_frame"}},
		{name: "a hello of another version", running: true, raw: raw(frame(6, protocol.Hello{Proto: 9})), want: []string{"6 proto_mismatch", "2 exit"}, closes: true, status: 1},
		{name: "input of another id", running: true, raw: raw(frame(9, protocol.ExecStdin{EOF: true})), want: []string{"9 no_exec"}},
		{name: "input behind its end", running: true, raw: both(eof, eof), want: []string{"2 no_exec", "2 exit 5"}},
		{name: "a cancel of another id", running: true, raw: raw(frame(9, protocol.Cancel{})), want: going},
		{name: "a hundred cancels", running: true, raw: func(s *scene) []byte { return bytes.Repeat(cancel(s), 100) }, want: []string{"2 exit 143"}},
		{name: "a bad cancel", running: true, raw: raw(envelope(2, "cancel", append(mpack.AppendMap(nil, 1), 0xa1, 'x', 0xc0))), want: []string{"2 malformed_frame"}},
		{name: "bad input", running: true, raw: raw(envelope(2, "exec_stdin", emptyMap)), want: []string{"2 malformed_frame"}},
		{name: "an exit of one's own", running: true, raw: raw(frame(2, protocol.ExecExit{Enforcement: []string{}})), want: []string{"2 unknown_kind"}},
		{name: "a heartbeat under the running id", running: true, raw: raw(frame(2, protocol.Heartbeat{})), want: []string{"2 heartbeat"}},
		{name: "a malformed frame", running: true, raw: raw([]byte{0, 0, 0, 1, 0xc1}), want: []string{"0 malformed_frame", "2 exit"}, closes: true, status: 1},
		{name: "the end inside a frame", running: true, raw: raw(frame(5, protocol.Heartbeat{})[:9]), eof: true, want: []string{"0 malformed_frame", "2 exit"}, closes: true, status: 1},
		{name: "the end of the stream", running: true, raw: raw(), eof: true, want: []string{"2 exit"}, closes: true},
		{name: "frames behind shutdown", running: true, raw: both(stop, starting(9, nil), cancel, raw(frame(5, protocol.Heartbeat{}))), want: []string{"2 exit"}, closes: true},
		{name: "half a frame behind shutdown", running: true, raw: both(stop, raw([]byte{0, 0, 9})), eof: true, want: []string{"2 exit"}, closes: true},
	}
	for _, kind := range []string{"cap_call", "cap_result", "exec", "EXEC_START", "exec_start\x00", "", strings.Repeat("k", 1<<20)} {
		name := kind[:min(len(kind), 12)]
		list = append(list, conversation{name: fmt.Sprintf("the kind %q", name), raw: raw(envelope(5, kind, emptyMap)), want: []string{"5 unknown_kind"}})
	}
	return list
}

// startWith is the body of an exec_start with one value replaced.
func startWith(key string, value []byte) []byte {
	b := mpack.AppendMap(nil, 4)
	for _, f := range [][2]any{{"argv", mpack.AppendStrs(nil, []string{"/bin/true"})}, {"env", emptyMap}, {"cwd", mpack.AppendStr(nil, "/usr")}, {"token", mpack.AppendBin(nil, []byte("t"))}} {
		v := f[1].([]byte)
		if f[0] == key {
			v = value
		}
		b = append(mpack.AppendStr(b, f[0].(string)), v...)
	}
	return b
}

// twice is a heartbeat whose envelope has its id twice and no kind.
func twice() []byte {
	b := mpack.AppendUint(mpack.AppendStr(mpack.AppendMap(nil, 4), "v"), protocol.EnvelopeVersion)
	b = mpack.AppendUint(mpack.AppendStr(b, "id"), 5)
	b = mpack.AppendUint(mpack.AppendStr(b, "id"), 6)
	return framed(append(mpack.AppendStr(b, "body"), emptyMap...))
}

// word is a frame as an conversation's want has it, "" for output.
func word(f protocol.Frame) string {
	switch b := f.Body.(type) {
	case protocol.ExecOut:
		return ""
	case protocol.ErrorBody:
		return fmt.Sprintf("%d %s", f.ID, b.Code)
	case protocol.ExecExit:
		return fmt.Sprintf("%d exit %d", f.ID, b.Code)
	}
	return fmt.Sprintf("%d %s", f.ID, f.Kind)
}

// matches compares as sets; "2 exit" stands for any status.
func matches(got, want []string) bool {
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	return slices.EqualFunc(got, want, func(g, w string) bool {
		return g == w || strings.HasSuffix(w, " exit") && strings.HasPrefix(g, w+" ")
	})
}

const sentinel = 4242

// Each attack by bytes gets exactly its answers, and the helper goes on or ends in order.
func TestConversations(t *testing.T) {
	u := testenv.Ordinary(t)
	s := newScene(t, u, nil)
	for _, x := range conversations() {
		t.Run(x.name, func(t *testing.T) {
			h := start(t, u, s.policy(nil), nil)
			h.greet()
			h.send(sentinel, protocol.Heartbeat{})
			if f := h.next(); f.Kind != protocol.KindHeartbeat {
				t.Fatalf("got %s, expected a heartbeat", f.Kind)
			}
			if x.running {
				h.send(2, s.start("/bin/sh", "-c", "echo ready; cat >/dev/null; exit 5"))
				if f := h.next(); f.Kind != protocol.KindExecOut {
					t.Fatalf("got %s, expected output", f.Kind)
				}
			}
			x.write(h, s)
			want := slices.Clone(x.want)
			if !x.closes {
				h.send(sentinel, protocol.Heartbeat{})
				want = append(want, fmt.Sprintf("%d heartbeat", sentinel))
			}
			var got []string
			for x.flood && !slices.Contains(got, want[1]) {
				got = append(got, h.words(1)...)
			}
			if x.flood {
				slices.Sort(got)
				got = slices.Compact(got)
			} else {
				got = h.words(len(want))
			}
			if x.running && !x.closes && !slices.ContainsFunc(want, func(w string) bool { return strings.HasPrefix(w, "2 exit") }) {
				h.send(2, protocol.ExecStdin{EOF: true})
				want = append(want, "2 exit 5")
				got = append(got, h.words(1)...)
			}
			if !x.closes { // the control: nothing was broken
				h.send(77, s.start("/bin/true")) // without input: that may cross its end, which is answered
				if r := h.collect(77); r.exit == nil || r.exit.Code != 0 {
					t.Errorf("behind it: %+v %+v", r.exit, r.fail)
				}
				h.in.Close()
			}
			got = append(got, h.words(-1)...)
			if !matches(got, want) {
				t.Errorf("got %.20q\nwant %.20q", got, want)
			}
			if code := h.end(); code != x.status {
				t.Errorf("exit %d, expected %d", code, x.status)
			}
			if said := h.said(); strings.Contains(said, "goroutine") {
				t.Errorf("a panic: %s", said)
			}
		})
	}
}

func (x conversation) write(h *helper, s *scene) {
	h.t.Helper()
	b := x.raw(s)
	step := len(b)
	if x.slow {
		step = 1
	}
	for len(b) > 0 {
		if _, err := h.in.Write(b[:step]); err != nil {
			break // it has closed the channel already
		}
		b = b[step:]
		if x.slow {
			time.Sleep(time.Millisecond)
		}
	}
	if x.eof {
		h.in.Close()
	}
}

// words reads n answers, or with -1 all to the end of the stream.
func (h *helper) words(n int) []string {
	h.t.Helper()
	var got []string
	for n < 0 || len(got) < n {
		f, err := h.reader.Next()
		if err != nil {
			if n >= 0 || !errors.Is(err, io.EOF) {
				h.t.Fatalf("got %q, then %v; stderr %s", got, err, h.said())
			}
			return got
		}
		if w := word(f); w != "" {
			got = append(got, w)
		}
	}
	return got
}

// A broker that reads no more is a broker that is gone: the helper ends, and the
// command with it.
func TestReaderIsGone(t *testing.T) {
	u := testenv.Ordinary(t)
	s := newScene(t, u, nil)
	h := start(t, u, s.policy(nil), nil)
	h.greet()
	tag := "stays-" + s.Nonce + "-reader"
	h.send(2, s.start(s.program(), "@stay", tag))
	testenv.Eventually(t, "the command", func() bool { return alive(tag) == nil })
	h.out.Close()
	h.send(5, protocol.Heartbeat{}) // whose answer nobody takes
	testenv.Eventually(t, "the end of the command", func() bool { return alive(tag) != nil })
	var exit *exec.ExitError
	if err := h.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
}
