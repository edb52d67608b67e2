package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"

	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// events is the voice of run --json: one object a line. The last one is "exit" or
// "error"; a program that reads them needs nothing else.
type events struct {
	mu      sync.Mutex
	enc     *json.Encoder
	err     error // of the first write that failed
	streams map[protocol.Stream]*eventStream
	said    []byte // by the helper, and not yet passed on
	started bool
}

func newEvents(w io.Writer) *events {
	e := &events{enc: json.NewEncoder(w), streams: map[protocol.Stream]*eventStream{}}
	e.enc.SetEscapeHTML(false)
	for _, s := range []protocol.Stream{protocol.Stdout, protocol.Stderr} {
		e.streams[s] = &eventStream{e: e, name: s}
	}
	return e
}

type startEvent struct {
	Event     string   `json:"event"` // "start"
	Argv      []string `json:"argv"`
	Cwd       string   `json:"cwd"`
	Workspace string   `json:"workspace,omitempty"`
	Features  []string `json:"features"` // what the host offers
}

type outputEvent struct {
	Event  string          `json:"event"` // "output"
	Stream protocol.Stream `json:"stream"`
	Text   *string         `json:"text,omitempty"`
	Base64 *string         `json:"base64,omitempty"` // instead of text: bytes that are no UTF-8
}

type noticeEvent struct {
	Event   string `json:"event"` // "notice"
	Message string `json:"message"`
}

type errorEvent struct {
	Event   string        `json:"event"` // "error"
	Reason  protocol.Code `json:"reason,omitempty"`
	Message string        `json:"message"`
	Exit    int           `json:"exit"` // of run itself
}

type exitEvent struct {
	Event           string   `json:"event"` // "exit"
	Code            int      `json:"code"`  // of the command; 128+n for signal n
	Signal          int      `json:"signal,omitempty"`
	Exit            int      `json:"exit"` // of run itself
	TimedOut        bool     `json:"timed_out"`
	Cancelled       bool     `json:"cancelled"`
	Degraded        bool     `json:"degraded"`
	StdoutBytes     uint64   `json:"stdout_bytes"`
	StderrBytes     uint64   `json:"stderr_bytes"`
	StdoutTruncated bool     `json:"stdout_truncated"`
	StderrTruncated bool     `json:"stderr_truncated"`
	WallMS          uint64   `json:"wall_ms"`
	Enforcement     []string `json:"enforcement"`
}

func (e *events) put(event any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = e.enc.Encode(event)
	}
	return e.err
}

func (e *events) start(t task, features []string) {
	e.helperSays(nil, true)
	ev := startEvent{"start", t.o.argv, t.cwd, t.workspace, list0(features)}
	if t.o.policyFile != "" && !t.o.given["workspace"] {
		ev.Workspace = "" // the policy names what is writable
	}
	e.put(ev)
}

func (e *events) output(s protocol.Stream) io.Writer { return e.streams[s] }
func (e *events) notice(text string)                 { e.put(noticeEvent{"notice", text}) }

func (e *events) fail(code int, err error) int {
	e.end()
	ev := errorEvent{Event: "error", Message: err.Error(), Exit: code}
	var frame *broker.Error
	if errors.As(err, &frame) {
		ev.Reason = frame.Code
	}
	e.put(ev)
	return code
}

func (e *events) helperFailed(code int, said string) int {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	e.said = nil
	for _, line := range lines[:len(lines)-1] {
		e.notice(strings.TrimPrefix(line, "sandboxd: "))
	}
	return e.fail(code, errors.New(strings.TrimPrefix(lines[len(lines)-1], "sandboxd: ")))
}

func (e *events) exit(res broker.Result, code int) int {
	e.end()
	err := e.put(exitEvent{
		Event: "exit", Code: res.Code, Signal: res.Signal, Exit: code,
		TimedOut: res.TimedOut, Cancelled: res.Cancelled, Degraded: res.Degraded,
		StdoutBytes: res.StdoutBytes, StderrBytes: res.StderrBytes,
		StdoutTruncated: res.StdoutTruncated, StderrTruncated: res.StderrTruncated,
		WallMS: res.WallMS, Enforcement: list0(res.Enforcement),
	})
	return unsaid(code, err)
}

// end puts out what the streams hold back.
func (e *events) end() {
	for _, s := range []protocol.Stream{protocol.Stdout, protocol.Stderr} {
		e.streams[s].flush()
	}
}

// helper takes what the helper says on its stderr. One that fails to start says why
// in its last line, which is an error then and no notice; so lines wait for the start.
func (e *events) helper() io.Writer { return helperLines{e} }

type helperLines struct{ e *events }

func (h helperLines) Write(b []byte) (int, error) {
	h.e.helperSays(b, false)
	return len(b), nil
}

func (e *events) helperSays(b []byte, started bool) {
	e.mu.Lock()
	e.said = append(e.said, b...)
	e.started = e.started || started
	var lines []string
	for e.started {
		line, rest, whole := bytes.Cut(e.said, []byte("\n"))
		if !whole {
			break
		}
		lines, e.said = append(lines, strings.TrimPrefix(string(line), "sandboxd: ")), rest
	}
	e.mu.Unlock()
	for _, line := range lines {
		e.notice(line)
	}
}
