package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// conclude says on stderr what a person has to know and returns the exit code.
func (r runner) conclude(res broker.Result, err error) int {
	var frame *broker.Error
	switch {
	case errors.As(err, &frame):
		complain(r.s, 0, errors.New(frame.Msg))
		return launchCode(frame)
	case err != nil && res.Enforcement == nil:
		return complain(r.s, exitFailed, err)
	}
	r.notices(res)
	if r.o.report {
		r.report(res)
	}
	switch {
	case err != nil:
		return complain(r.s, exitFailed, err)
	case res.TimedOut:
		return complain(r.s, exitTimedOut, fmt.Errorf("the command was stopped after its %d s (--wall)", r.policy.Limits.WallSeconds))
	}
	return res.Code
}

// launchCode tells a command that could not be executed from a jail that could not
// be built: only the step "exec" speaks of the command itself.
func launchCode(e *broker.Error) int {
	step, text, _ := strings.Cut(e.Msg, ": ")
	switch {
	case e.Code != protocol.CodeSpawnFailed || step != "exec":
		return exitFailed
	case strings.Contains(text, "not found in the jail") || strings.Contains(text, "does not exist in the jail"):
		return exitNotFound
	}
	return exitCannotRun
}

// notices are printed without being asked for: what was cut, and what was asked for
// and not given.
func (r runner) notices(res broker.Result) {
	for name, cut := range map[string]bool{"stdout": res.StdoutTruncated, "stderr": res.StderrTruncated} {
		if cut {
			complain(r.s, 0, fmt.Errorf("the command's %s was cut; --output raises the limit of %d bytes", name, r.policy.Limits.OutputBytes))
		}
	}
	if res.Degraded {
		complain(r.s, 0, errors.New("degraded: the command ran without a jail"))
	}
	for _, entry := range res.Enforcement {
		if what, ok := strings.CutPrefix(entry, "skip:guard: "); ok && !r.o.report {
			complain(r.s, 0, errors.New(guardNotice+what))
		}
		if strings.HasPrefix(entry, "skip:cgroup-v2:") && !r.o.report {
			complain(r.s, 0, fmt.Errorf("not enforced: %s", strings.TrimPrefix(entry, "skip:")))
		}
	}
}

func (r runner) report(res broker.Result) {
	for _, entry := range res.Enforcement {
		line := "enforced      " + entry
		if skip, ok := strings.CutPrefix(entry, "skip:"); ok {
			line = "NOT enforced  " + skip
		}
		fmt.Fprintln(r.s.Stderr, "sandboxd:", printable(line))
	}
	fmt.Fprintf(r.s.Stderr, "sandboxd: exit code %d after %d ms\n", res.Code, res.WallMS)
}

// printable keeps what a command could have named from driving the terminal.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\t' || strconv.IsPrint(c) {
			return c
		}
		return '?'
	}, s)
}
