package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// voice is how run speaks: in words on stderr beside the command's own output, or as
// JSON events on stdout with the command's output among them.
type voice interface {
	start(t task, features []string)
	output(s protocol.Stream) io.Writer
	helper() io.Writer // for what the helper itself says
	notice(text string)
	// fail ends a run without a result and gives the exit code.
	fail(code int, err error) int
	// helperFailed is fail for a helper that has said why.
	helperFailed(code int, said string) int
	// exit ends a run. code is that of run itself, unless what had to be said could not
	// be written: then it is what exit gives.
	exit(res broker.Result, code int) int
	end()
}

func talker(o options, s System) voice {
	s.Stdout, s.Stderr = patient{s.Stdout}, patient{s.Stderr}
	if o.json {
		return newEvents(s.Stdout)
	}
	w := &words{s: s, stderr: s.Stderr, own: &written{to: s.Stderr}, report: o.report}
	w.s.Stderr = w.own
	return w
}

// words is the voice for a person.
type words struct {
	s      System // whose Stderr is own
	stderr io.Writer
	own    *written // what is not the command's
	report bool
}

func (w *words) start(task, []string) {}

func (w *words) output(s protocol.Stream) io.Writer {
	if s == protocol.Stderr {
		return w.stderr
	}
	return w.s.Stdout
}

func (w *words) helper() io.Writer  { return w.s.Stderr }
func (w *words) notice(text string) { complain(w.s, 0, errors.New(text)) }

func (w *words) fail(code int, err error) int { return complain(w.s, code, err) }

// helperFailed has nothing to add: the helper's words went to stderr.
func (w *words) helperFailed(code int, _ string) int { return code }

func (w *words) exit(res broker.Result, code int) int {
	if w.report {
		w.enforcement(res)
	}
	return unsaid(code, w.own.failed())
}

func (w *words) enforcement(res broker.Result) {
	for _, entry := range res.Enforcement {
		line := "enforced      " + entry
		if skip, ok := strings.CutPrefix(entry, "skip:"); ok {
			line = "NOT enforced  " + skip
		}
		fmt.Fprintln(w.s.Stderr, "sandboxd:", printable(line))
	}
	fmt.Fprintf(w.s.Stderr, "sandboxd: exit code %d after %d ms\n", res.Code, res.WallMS)
}

func (w *words) end() {}

// printable keeps what a command could have named from driving the terminal.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\t' || strconv.IsPrint(c) {
			return c
		}
		return '?'
	}, s)
}
