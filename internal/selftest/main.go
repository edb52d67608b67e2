package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"sandboxd/internal/report"
)

// platform is the system that the probes run on.
const platform = runtime.GOOS

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitNotRun = 3 // nothing could be run, proved or printed, or no jail for this system
)

// System is what the command uses of the process it runs in.
type System struct {
	Stdout, Stderr io.Writer
	Executable     func() (string, error)
	Terminal       bool // Stderr is one: progress is shown
	Closed         bool // Stdout was closed from the start
}

// Main is `sandboxd self-test` and returns the exit code.
func Main(args []string, s System) int {
	o, err := parseOptions(args)
	switch {
	case isHelp(err):
		if _, err := io.WriteString(s.Stdout, Usage); err != nil {
			fmt.Fprintln(s.Stderr, "sandboxd: cannot write the help:", err)
			return exitNotRun
		}
		return exitOK
	case err != nil:
		fmt.Fprintln(s.Stderr, "sandboxd:", err)
		return exitUsage
	}
	if s.Closed {
		fmt.Fprintln(s.Stderr, "sandboxd: cannot write the result: standard output is closed; give it a file, a pipe or, to discard the result, /dev/null for writing")
		return exitNotRun
	}
	ctx, stop := interruptible()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := newPrinter(s, o, cancel) // a result that nobody reads is an end
	return p.end(outcomeOf(ctx, o, s, p))
}

// outcomeOf is the whole run, on every system.
func outcomeOf(ctx context.Context, o options, s System, p *printer) Run {
	run, err := Run{}, error(nil)
	if !report.Supported(platform) {
		run = Run{Result: Unsupported, Reason: "this program has no jail for " + platform}
	} else if run, err = execute(ctx, o, s, p); err != nil {
		run = Run{Result: NotRun, Reason: err.Error()}
	}
	if ctx.Err() != nil {
		run.Reason = interrupted
		if run.Result != AnyFailed {
			run.Result = NotRun
		}
	}
	run.OS, run.Arch = platform, runtime.GOARCH
	return run
}

// Result is how the whole run ended.
type Result string

// The results. The text after "RESULT: " is made from them.
const (
	Passed      Result = "passed"
	PassedSkips Result = "passed-with-skips"
	AnyFailed   Result = "failed"
	NotRun      Result = "not-run"
	Unsupported Result = "unsupported-platform"
)

// Run is everything that the self-test found.
type Run struct {
	Result      Result    `json:"result"`
	Reason      string    `json:"reason,omitempty"`
	OS          string    `json:"os"`
	Arch        string    `json:"arch"`
	Features    []string  `json:"features"`    // of the helper's hello
	Enforcement []string  `json:"enforcement"` // of the smallest command
	Enforced    int       `json:"enforced"`
	Skipped     int       `json:"skipped"`
	Failed      int       `json:"failed"`
	Untried     int       `json:"not_run"`
	Required    []string  `json:"required,omitempty"` // what --require names and this host lacks: skipped probes, then layers
	Of          int       `json:"of"`                 // how many probes there are: more than were run with --only
	MS          int64     `json:"ms"`
	Probes      []Finding `json:"probes"`
}

// conclude counts and decides. Nothing enforced is no pass, whatever was skipped.
func (r *Run) conclude(o options) {
	for _, f := range r.Probes {
		switch f.Verdict {
		case Enforced:
			r.Enforced++
		case Skipped:
			r.Skipped++
		case Untried:
			r.Untried++
		default:
			r.Failed++
		}
		if o.demanded(f) {
			r.Required = append(r.Required, f.Probe)
		}
	}
	r.Required = append(r.Required, o.unmet(r.Enforcement)...)
	switch {
	case r.Failed > 0 || len(r.Required) > 0:
		r.Result = AnyFailed
	case r.Untried > 0:
		r.Result, r.Reason = NotRun, "not every probe could be run"
	case r.Enforced == 0:
		r.Result, r.Reason = NotRun, "no probe could show that anything is enforced here"
	case r.Skipped > 0:
		r.Result = PassedSkips
	default:
		r.Result = Passed
	}
}

// execute makes the fixture, the helpers and the findings. An error means that no
// probe could be run.
func execute(ctx context.Context, o options, s System, p *printer) (Run, error) {
	begin := time.Now()
	executable, err := s.Executable()
	if err != nil {
		return Run{}, fmt.Errorf("cannot find this program's own file: %w", err)
	}
	parent, err := fixtureParent(o.dir)
	if err != nil {
		return Run{}, err
	}
	for _, dir := range append(usualParents(), parent) {
		sweep(dir)
	}
	sweepMemory()
	sh, err := newShared(parent, executable)
	if err != nil {
		return Run{}, err
	}
	defer sh.close()
	e, err := newEngine(ctx, o, sh)
	if err != nil {
		return Run{}, err
	}
	probes, err := o.chosen(Probes(platform))
	if err != nil {
		return Run{}, errors.Join(err, e.close())
	}
	run := Run{OS: platform, Arch: runtime.GOARCH, Of: len(Probes(platform)), Features: e.features(), Enforcement: e.baseline}
	p.begin(run)
	run.Probes = e.all(ctx, probes, p)
	if err := e.close(); err != nil {
		run.Probes = append(run.Probes, Finding{Probe: "shutdown", Verdict: Failed, Means: "helpers end in order", Reason: err.Error()})
		p.finding(run.Probes[len(run.Probes)-1])
	}
	run.MS = time.Since(begin).Milliseconds()
	run.conclude(o)
	return run, nil
}

var errNowhere = errors.New("there is no directory for the fixture outside /tmp that this user can write and that has room; give --dir DIR")
