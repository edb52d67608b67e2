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
		return r.say.fail(launchCode(frame), reworded{frame, r.hint(frame) + r.origin(frame.Msg)})
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
	path, why := name, "is not in the jail's view"
	if !strings.Contains(name, "/") {
		found, err := exec.LookPath(name)
		if err != nil {
			return mistaken(name)
		}
		path, why = found, why+" or not on its PATH"
	}
	path = absolute(r.task.cwd, path)
	if _, err := os.Stat(path); err != nil {
		return mistaken(name)
	}
	return fmt.Sprintf("; this host has %s, which %s: `sandboxd explain %s` says more", path, why, quoted(path))
}

// builtins are what a shell does by itself and no program does.
var builtins = []string{".", "alias", "cd", "eval", "exec", "export", "set", "source", "ulimit", "umask", "unset"}

// mistaken says what a name that is no program's probably is.
func mistaken(name string) string {
	given, _, _ := strings.Cut(name, "=")
	switch {
	case slices.ContainsFunc(flagsOf(forRun), func(f flag) bool { return given == "--"+f.name }):
		return fmt.Sprintf("; %s is a flag of run, and stands in front of the --", given)
	case strings.ContainsAny(name, " \t\n|&;<>$`\"'*?()~"):
		return "; no shell has read this: give each word by itself, or the whole to a shell: run -- sh -c " + quoted(name)
	case slices.Contains(builtins, name):
		return fmt.Sprintf("; %s is a part of the shell: run -- sh -c '%s ...'", name, name)
	}
	return ""
}

// origin says which flag or line made the entry that the helper refuses, as explain
// does.
func (r runner) origin(msg string) string {
	rest, ok := strings.CutPrefix(msg, "cannot honour ")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, " ")
	if name == "cwd" && r.o.workspace != "" {
		return " (it is from --workspace)"
	}
	text := r.task.sources.from(name)
	if text == "" && name == "writable_roots[0]" && r.o.workspace != "" && r.o.policyFile == "" {
		text = "--workspace"
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" (%s is from %s)", name, text)
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
		for _, path := range r.o.protect { // asked for, as a ceiling is
			r.say.notice("not enforced: --protect " + path + ": without a jail it is there wherever a grant covers it")
		}
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
	for _, text := range ceilings(res, r.task.policy.Limits) {
		r.say.notice(text)
	}
}

// Signals by which the kernel enforces a limit (setrlimit(2)). Their numbers are the
// same on every system with a jail.
const (
	sigXCPU  = 24
	sigXFSZ  = 25
	cgroupV2 = protocol.TagCgroupV2 + ":"
)

// ceilings says which ceilings the command met: what the kernel counted or sent, no
// guess by an exit code.
func ceilings(res broker.Result, l protocol.Limits) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case res.Signal == sigXFSZ && l.FsizeBytes > 0:
		add("the command was ended by SIGXFSZ, which the kernel sends for a file that grows beyond %s (--fsize)", sizeWord(l.FsizeBytes))
	case res.Signal == sigXCPU && l.CPUSeconds > 0:
		add("the command was ended by SIGXCPU, which the kernel sends for more than %d s of CPU time (--cpu)", l.CPUSeconds)
	}
	for _, entry := range res.Enforcement {
		counts, _ := strings.CutPrefix(entry, cgroupV2)
		for _, count := range strings.Split(counts, ",") {
			switch name, n, _ := strings.Cut(count, "="); {
			case counts == entry || n == "0":
			case name == "oom_kill":
				add("killed for memory: %s of the command's processes (--mem)", n)
			case name == "pids_denied":
				add("refused: %s times another process or thread (--pids)", n)
			}
		}
	}
	return out
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
