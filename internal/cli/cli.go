// Package cli is what a person types: it turns flags into a policy, speaks the real
// protocol to a helper through protocol/broker, and turns results into exit codes.
// It also explains a policy without running anything, and says what a host lacks.
//
// What it does not protect: nothing is enforced here. It refuses a few workspaces
// that are most likely a mistake, which is a courtesy and no boundary.
package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"sandboxd/internal/selftest/witness"
	"sandboxd/protocol"
)

// Exit codes of the commands. A command's own code passes through.
const (
	exitNoJail    = 1 // doctor: this host has no jail
	exitUsage     = 2
	exitTimedOut  = 124 // the wall clock limit ended the command
	exitFailed    = 125 // sandboxd refused, or failed itself
	exitCannotRun = 126 // the command is there, but cannot be executed
	exitNotFound  = 127 // there is no such command, or no interpreter for it
)

// System is what the commands use of the process they run in.
type System struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Getwd          func() (string, error)
	Executable     func() (string, error)
	Signals        func() Signals

	ServerUsage string // the server's own list of flags, for the manual and the completions
}

// Role reports whether arg selects a command of this package, so that it is no flag
// of the server.
func Role(arg string) bool {
	_, ok := find(arg)
	return ok || witness.Role(arg) || misplaced(arg) != nil
}

// misplaced says what is wrong with a first argument that belongs behind a command, or
// nil. What the server takes too is none of it.
func misplaced(arg string) error {
	if arg == "--" {
		return errors.New("which command? `sandboxd run -- CMD [ARG...]` runs CMD in the jail, and `sandboxd --help` lists the others")
	}
	name, _, _ := strings.Cut(arg, "=")
	for _, f := range flagTable() {
		if name == "--"+f.name && !slices.Contains(serverToo, f.name) {
			first := takers(f)[0]
			return fmt.Errorf("%s is a flag of %s, and stands behind it: `sandboxd %s %s`", name, english(takers(f)), first, f.synopsis())
		}
	}
	return nil
}

// serverToo are the flags of the table that the server has as well.
var serverToo = []string{"bwrap", "cgroup-base", "accept-skip", "require-enforced"}

// Main runs the command that args[0] names and returns the exit code.
func Main(args []string, s System) int {
	if len(args) > 0 && witness.Role(args[0]) {
		return witness.Main(args)
	}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	c, ok := find(name)
	if err := misplaced(name); err != nil {
		return complain(s, exitUsage, err)
	}
	if !ok {
		return complain(s, exitUsage, noSuchCommand(name))
	}
	if c.name == "run" { // says itself what became of the command's output
		return c.run(args[1:], s)
	}
	return printed(s, func(s System) int { return c.run(args[1:], s) })
}

// printed gives the exit code of what prints an answer on standard output. One of which
// not all could be printed was not given, whatever was found.
func printed(s System, run func(System) int) int {
	out := &checked{w: s.Stdout}
	s.Stdout = out
	code := run(s)
	if code == 0 && out.err != nil {
		return complain(s, exitFailed, fmt.Errorf("cannot print all of it: %w", out.err))
	}
	return code
}

func noSuchCommand(name string) error {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	if like := similar(name, names); like != "" {
		return fmt.Errorf("there is no command %q; do you mean `sandboxd %s`?", name, like)
	}
	return fmt.Errorf("there is no command %q; `sandboxd --help` lists them, and `sandboxd run -- %s` runs a program", name, name)
}

// release is the version that scripts/dist links in.
var release string

// Version is the version of this build, "(devel)" where it was not stamped.
func Version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func version(args []string, s System) int {
	if len(args) > 0 {
		return complain(s, exitUsage, fmt.Errorf("unknown argument %q; type `sandboxd --version`", args[0]))
	}
	fmt.Fprintf(s.Stdout, "sandboxd %s\nexec protocol %d, policy %d, %s %s/%s\n",
		Version(), protocol.ExecVersion, protocol.PolicyVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return 0
}

// complain prints an error as every command does, and gives its exit code.
func complain(s System, code int, err error) int {
	fmt.Fprintln(s.Stderr, "sandboxd:", printable(err.Error()))
	return code
}

// reject is complain for wrong arguments; a request for help is none.
func reject(s System, command string, err error) int {
	if errors.Is(err, errHelp) {
		return help([]string{command}, s)
	}
	return complain(s, exitUsage, err)
}

var errHelp = errors.New("help")
