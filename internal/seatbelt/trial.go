package seatbelt

import (
	"fmt"
	"strconv"
	"strings"

	"sandboxd/internal/host"
)

// Path is the program that applies profiles. PATH never selects it.
const Path = "/usr/bin/sandbox-exec"

// Trial is a profile that denies nothing, and TrialProgram what is run under it, to
// learn whether profiles can be applied in this process tree at all.
const (
	Trial        = "(version 1)(allow default)"
	TrialProgram = "/usr/bin/true"
)

// Exit codes of sandbox-exec itself, from sysexits(3).
const (
	ExitProfile = 65 // the profile cannot be compiled
	ExitNested  = 71 // sandbox_apply(3) was refused
)

// Attempt is how the trial ended.
type Attempt struct {
	Missing  bool   // there is no sandbox-exec
	TimedOut bool   // it was killed at the deadline
	StartErr string // it could not be started
	Exit     int
	Stderr   string
}

// Classify says what the trial proves. Absent is only what cannot pass by itself: a
// missing program, or a kernel that refuses because this process is in a sandbox
// already, which is a fact of the process tree.
func Classify(a Attempt) (host.State, string) {
	switch {
	case a.Missing:
		return host.Absent, "this system has no " + Path
	case a.TimedOut:
		return host.Unsure, "sandbox-exec did not finish its trial in time; the machine may be loaded"
	case a.StartErr != "":
		return host.Unsure, "sandbox-exec could not be started: " + a.StartErr
	case a.Exit == 0:
		return host.Works, ""
	case a.Exit == ExitNested && strings.Contains(a.Stderr, "Operation not permitted"):
		return host.Absent, "this process already runs in a sandbox, and macOS nests none (sandbox_apply: Operation not permitted); start the helper outside of it"
	}
	return host.Unsure, "sandbox-exec's trial failed with exit code " + strconv.Itoa(a.Exit) + said(a.Stderr)
}

// Launch says why sandbox-exec, or the stage 2 that it became, ended without a word.
func Launch(exit int, stderr string) string {
	switch exit {
	case ExitProfile:
		return "sandbox-exec refuses the profile; this is a defect of sandboxd, or of this macOS release" + said(stderr)
	case ExitNested:
		return "the kernel refuses to apply a profile here: this process tree is in a sandbox already" + said(stderr)
	}
	return "the jail ended before the command could start (exit code " + strconv.Itoa(exit) + ")" + said(stderr)
}

// said is the start of a message, on one line.
func said(stderr string) string {
	const most = 200
	line, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	if line == "" {
		return ""
	}
	return fmt.Sprintf(" (it said: %.*q)", most, line)
}

// Reserve is how many processes of the user a ceiling must leave room for.
const Reserve = 16

// RoomForProcesses says why RLIMIT_NPROC must not be set, or "". The limit counts
// all processes of the user, not those of one execution.
func RoomForProcesses(running int, ceiling uint64) string {
	if running < 0 {
		return "the number of this user's processes is not known, and RLIMIT_NPROC counts them all"
	}
	if uint64(running)+Reserve > ceiling {
		return fmt.Sprintf("this user has %d processes already, and RLIMIT_NPROC=%d counts them all; pids is held by nothing", running, ceiling)
	}
	return ""
}

// ArgvLimit bounds the bytes of sandbox-exec's arguments: the kernel's ARG_MAX is
// 1 MiB with the environment, which is empty.
const ArgvLimit = 900 << 10

// InlineLimit is the size in bytes above which a profile goes through a file.
const InlineLimit = 16 << 10

// ArgvSize is what a list of arguments takes of ArgvLimit, in bytes.
func ArgvSize(args []string) int {
	n := 0
	for _, a := range args {
		n += len(a) + 1 + 8 // and its pointer
	}
	return n
}
