package selftest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// printer writes the findings as they come, and progress on a terminal.
type printer struct {
	out, err io.Writer
	json     bool
	terminal bool
	shown    bool     // a progress line stands on the terminal
	written  *checked // out: whether all of it could be written
}

// newPrinter calls lost once if something cannot be written.
func newPrinter(s System, o options, lost func()) *printer {
	w := &checked{out: s.Stdout, lost: lost}
	return &printer{out: w, written: w, err: s.Stderr, json: o.json, terminal: s.Terminal}
}

// checked is a writer that remembers the first error and writes nothing after it.
type checked struct {
	out  io.Writer
	err  error
	lost func()
}

func (c *checked) Write(b []byte) (int, error) {
	if c.err == nil {
		if _, c.err = c.out.Write(b); c.err != nil {
			c.lost()
		}
	}
	return len(b), nil
}

// code is the exit code: a result that could not be written is no pass.
func (p *printer) code(r Run) int {
	if p.written.err == nil {
		return r.Result.exit()
	}
	fmt.Fprintf(p.err, "sandboxd: cannot write the result: %v\n", p.written.err)
	return max(r.Result.exit(), exitFailed)
}

func (p *printer) begin(r Run) {
	if p.json {
		return
	}
	fmt.Fprintf(p.out, "sandboxd self-test on %s/%s; the host offers: %s\n", r.OS, r.Arch, strings.Join(r.Features, " "))
}

func (p *printer) progress(n, of int, name string) {
	if p.terminal {
		fmt.Fprintf(p.err, "\r\x1b[K%d of %d probes (%s)", n, of, name)
		p.shown = true
	}
}

func (p *printer) clear() {
	if p.shown {
		fmt.Fprint(p.err, "\r\x1b[K")
		p.shown = false
	}
}

// finding is one line.
func (p *printer) finding(f Finding) {
	if p.json {
		return
	}
	p.clear()
	line := fmt.Sprintf("%-8s %-22s %s", f.Verdict, f.Probe, f.Means)
	if f.Reason != "" {
		line += ": " + f.Reason
	}
	if f.Note != "" {
		line += " (" + f.Note + ")"
	}
	fmt.Fprintln(p.out, printable(line))
}

// end prints the summary and gives the exit code.
func (p *printer) end(r Run) int {
	p.clear()
	if p.json {
		p.object(r)
		return p.code(r)
	}
	if len(r.Probes) > 0 {
		rest := ""
		if r.Untried > 0 {
			rest = fmt.Sprintf(", %d not run", r.Untried)
		}
		fmt.Fprintf(p.out, "%d enforced, %d skipped, %d failed%s in %.1f s; skips are environmental, not passes\n",
			r.Enforced, r.Skipped, r.Failed, rest, float64(r.MS)/1000)
	}
	if len(r.Required) > 0 {
		fmt.Fprintf(p.out, "required, but missing here: %s\n", strings.Join(r.Required, ", "))
	}
	if r.Reason != "" {
		fmt.Fprintln(p.out, printable(r.Reason))
	}
	fmt.Fprintln(p.out, "RESULT:", r.text()+r.part())
	return p.code(r)
}

func (p *printer) object(r Run) {
	if r.Probes == nil {
		r.Probes = []Finding{}
	}
	if r.Features == nil {
		r.Features = []string{}
	}
	if r.Enforcement == nil {
		r.Enforcement = []string{}
	}
	e := json.NewEncoder(p.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	e.Encode(r)
}

// text is what stands after "RESULT: ".
func (r Run) text() string {
	switch r.Result {
	case Passed:
		return "PASSED"
	case PassedSkips:
		return fmt.Sprintf("PASSED WITH %d SKIPPED", r.Skipped)
	case NotRun:
		return "NOT RUN (not a pass)"
	case Unsupported:
		return "UNSUPPORTED PLATFORM"
	}
	return "FAILED"
}

// part marks a run of a few probes only: a gate that compares the line is not passed.
func (r Run) part() string {
	if n := r.Enforced + r.Skipped + r.Failed; n < r.Of {
		return fmt.Sprintf(" (ONLY %d OF %d PROBES)", n, r.Of)
	}
	return ""
}

func (r Result) exit() int {
	switch r {
	case Passed, PassedSkips:
		return exitOK
	case NotRun, Unsupported:
		return exitNotRun
	}
	return exitFailed
}

// printable keeps what a reason quotes on one line and harmless to a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
