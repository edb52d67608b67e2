// Package cli is what a person types: it turns flags into a policy, speaks the real
// protocol to a helper through protocol/broker, and turns results into exit codes.
//
// What it does not protect: nothing is enforced here. It refuses a few workspaces
// that are most likely a mistake, which is a courtesy and no boundary.
package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"sandboxd/internal/selftest/witness"
	"sandboxd/protocol"
)

// Exit codes of the commands. A command's own code passes through.
const (
	exitUsage     = 2
	exitTimedOut  = 124 // the wall clock limit ended the command
	exitFailed    = 125 // sandboxd refused, or failed itself
	exitCannotRun = 126 // the command is there, but cannot be executed
	exitNotFound  = 127 // there is no such command
)

// System is what the commands use of the process they run in.
type System struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Getwd          func() (string, error)
	Executable     func() (string, error)
	Signals        func() (<-chan os.Signal, func()) // SIGINT and its like; the func ends it
}

// command is one entry of the command table.
type command struct {
	name, args, help string
	run              func(args []string, s System) int
}

func commands() []command {
	return []command{
		{"run", "[flags] -- CMD [ARG...]", "run a command in the jail", runCommand},
		{"self-test", "[--json] [--require all|TAG,...]", "what this machine really enforces", selfTest},
		{"--self-test", "", "the same", selfTest},
		{"policy", "workspace|fence [flags]", "print the policy of a preset", policyCommand},
		{"--publish-git-identity", "POLICY WORKSPACE ENTRIES", "for brokers: write a git identity", publishIdentity},
		{"--version", "", "print versions", version},
		{"--help", "", "print this", help},
	}
}

// Role reports whether arg selects a command of this package, so that it is no flag
// of the server.
func Role(arg string) bool {
	if arg == "-h" || witness.Role(arg) {
		return true
	}
	for _, c := range commands() {
		if c.name == arg {
			return true
		}
	}
	return false
}

// Main runs the command that args[0] names and returns the exit code.
func Main(args []string, s System) int {
	if len(args) > 0 && args[0] == "-h" {
		return help(nil, s)
	}
	if len(args) > 0 && witness.Role(args[0]) {
		return witness.Main(args)
	}
	for _, c := range commands() {
		if len(args) > 0 && c.name == args[0] {
			return c.run(args[1:], s)
		}
	}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	fmt.Fprintf(s.Stderr, "sandboxd: there is no command %q; `sandboxd --help` lists them, and `sandboxd run -- %s` runs a program\n", name, name)
	return exitUsage
}

// Version is the version of this build, "(devel)" where it was not stamped.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func version(_ []string, s System) int {
	fmt.Fprintf(s.Stdout, "sandboxd %s\nexec protocol %d, policy %d, %s %s/%s\n",
		Version(), protocol.ExecVersion, protocol.PolicyVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return 0
}

func help(_ []string, s System) int {
	fmt.Fprint(s.Stdout, `sandboxd runs one untrusted command at a time in a kernel-enforced jail and says
what was really enforced.

`)
	for _, c := range commands() {
		fmt.Fprintf(s.Stdout, "  sandboxd %-32s %s\n", c.name+" "+c.args, c.help)
	}
	fmt.Fprint(s.Stdout, `  sandboxd [server flags]                  serve: policy on descriptor 3, frames on stdio
                                           (protocol/PROTOCOL.md)

Flags of run, and of policy but for those of the run itself:
`)
	printFlags(s.Stdout)
	fmt.Fprint(s.Stdout, `
Sizes take K, M, G, T (1024); durations s, m, h; 0 is no ceiling.
Exit code of run: the command's own; 128+n for signal n; 124 timed out; 125 sandboxd
refused or failed; 126 the command cannot be executed; 127 it was not found.
`)
	return 0
}
