package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// exitBrokenPipe is 128 plus SIGPIPE: what a command has that nobody reads any more.
const exitBrokenPipe = 128 + 13

// conclude says what a person has to know and returns the exit code. left is what the
// helper said when it was shut down.
func (r runner) conclude(res broker.Result, err error, killed bool, left error) int {
	var frame *broker.Error
	var ended *broker.ExitError
	if left != nil && !killed && !errors.As(err, &ended) {
		r.say.notice(left.Error())
	}
	switch {
	case killed:
		return r.say.fail(exitFailed, errors.New("interrupted: the helper was killed, and the jail with it"))
	case errors.As(err, &frame):
		return r.say.fail(launchCode(frame), reworded{frame, r.hint(frame)})
	case err != nil && res.Enforcement == nil:
		return r.say.fail(exitFailed, err)
	}
	r.notices(res)
	code := res.Code
	switch {
	case errors.Is(err, syscall.EPIPE): // whoever read it went away, and knows
		code = exitBrokenPipe
	case err != nil:
		code = exitFailed
		r.say.notice(err.Error())
	case res.TimedOut:
		code = exitTimedOut
		r.say.notice(fmt.Sprintf("the command was stopped after its %d s (--wall)", r.task.policy.Limits.WallSeconds))
	}
	return r.say.exit(res, code)
}

// reworded is an error frame without the name of its code, which is for programs, and
// with what a person may do.
type reworded struct {
	frame *broker.Error
	hint  string
}

func (e reworded) Error() string { return e.frame.Msg + e.hint }
func (e reworded) Unwrap() error { return e.frame }

// launchCode gives a shell's exit status for a command that could not be executed,
// by PROTOCOL.md, "Error codes": only the step "exec" speaks of the command itself,
// and ENOENT may also be a missing interpreter.
func launchCode(e *broker.Error) int {
	text, isExec := strings.CutPrefix(e.Msg, "exec: ")
	switch {
	case e.Code != protocol.CodeSpawnFailed || !isExec:
		return exitFailed
	case errnoName(text) == "ENOENT":
		return exitNotFound
	}
	return exitCannotRun
}

// errnoName is what stands in the first parentheses outside double-quoted strings, in
// which \" is a quote.
func errnoName(text string) string {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == '(':
			name, _, _ := strings.Cut(text[i+1:], ")")
			return name
		}
	}
	return ""
}

// hint helps with the most frequent surprise: a program that is there on the host and
// not in the jail's view.
func (r runner) hint(e *broker.Error) string {
	name := r.o.argv[0]
	if launchCode(e) != exitNotFound || !strings.Contains(e.Msg, "not found in the jail") && !strings.Contains(e.Msg, "does not exist in the jail") {
		return ""
	}
	path := name
	if !strings.Contains(name, "/") {
		found, err := exec.LookPath(name)
		if err != nil {
			return ""
		}
		path = found
	}
	path = absolute(r.task.cwd, path)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return fmt.Sprintf("; this host has %s, which is not in the jail's view or not on its PATH: `sandboxd explain %s` says more", path, quoted(path))
}

// notices are given without being asked for: what was cut, and what was asked for
// and not given.
func (r runner) notices(res broker.Result) {
	for _, s := range []struct {
		name string
		cut  bool
		sent uint64
	}{{"stdout", res.StdoutTruncated, res.StdoutBytes}, {"stderr", res.StderrTruncated, res.StderrBytes}} {
		limit := r.task.policy.Limits.OutputBytes
		switch {
		case !s.cut:
		case limit > 0 && s.sent >= limit:
			r.say.notice(fmt.Sprintf("the command's %s was cut; --output raises the limit of %d bytes", s.name, limit))
		default:
			r.say.notice(fmt.Sprintf("the command's %s was cut: something else still held it when the command had ended", s.name))
		}
	}
	if res.Degraded {
		r.say.notice("degraded: the command ran without a jail")
	}
	for _, entry := range res.Enforcement {
		tag, skip := protocol.Layer(entry)
		what := strings.TrimPrefix(entry, "skip:"+tag+": ")
		switch {
		case !skip || r.o.report || r.o.json: // which have all of it
		case tag == protocol.TagGuard:
			r.say.notice(guardNotice + what)
		case told(tag, res):
			r.say.notice("not enforced: " + tag + ": " + what)
		}
	}
}

// told are the layers of which a person hears without asking. Ceilings: what is missing
// of them was asked for. How the command ended, where that is not known, or not all of
// it. A mask that was lost, for which the command was stopped.
func told(tag string, res broker.Result) bool {
	switch tag {
	case protocol.TagCgroupV2, protocol.TagRlimitCPU, protocol.TagRlimitFsize, protocol.TagRlimitAddressSpace, protocol.TagRlimitProcesses:
		return true
	case protocol.TagStage2: // of a command that was stopped before it ran there is nothing to say
		return began(res) || !res.Cancelled
	case protocol.TagMounts:
		return began(res) && res.Cancelled && !res.TimedOut
	}
	return false
}

// began says whether the jail's inside was heard of.
func began(res broker.Result) bool {
	return slices.ContainsFunc(res.Enforcement, func(entry string) bool {
		tag, skip := protocol.Layer(entry)
		return !skip && (tag == protocol.TagBwrap || tag == protocol.TagSeatbelt)
	})
}
