// Package broker is the Go client of sandboxd's exec channel: it starts a helper,
// runs commands in it, streams their output, cancels them and shuts the helper
// down. The rules it follows are PROTOCOL.md's, "Duties of a broker".
//
// A Helper and an Execution may be used from several goroutines. A helper runs one
// command at a time: a second one is answered with ErrBusy; use more helpers for
// more commands at once.
//
// What it does not protect: it believes the helper. It checks what the helper
// reports against what the policy demands (see Demand), but a program in the
// helper's place can report anything. It does not put a bound on the output that
// it hands to the caller's writers; the policy's output_bytes does.
package broker

import (
	"io"
	"time"

	"sandboxd/protocol"
)

// Demand says what an execution's report has to prove.
type Demand int

const (
	// Any accepts whatever was enforced; the caller reads Result.Enforcement.
	Any Demand = iota
	// Full rejects, with ErrNotEnforced, a report that misses or skips a layer
	// that the policy demands (protocol.Required), and refuses to start a command
	// on a helper that says beforehand that it has no jail.
	Full
)

// Options say how a helper is started and what is demanded of it.
type Options struct {
	Path   string           // of the sandboxd binary; required
	Args   []string         // server flags, such as "--cgroup-base", "DIR"
	Policy *protocol.Policy // the base policy, given on descriptor 3; required
	Env    []string         // the helper's own environment; nil: the caller's
	Dir    string           // the helper's working directory; "": the caller's
	Stderr io.Writer        // the helper's own messages; nil: dropped (see ExitError.Stderr)
	Peer   string           // how the hello names the caller; "": "sandboxd-broker"

	Demand Demand   // of every command
	Accept []string // tags whose absence Full lives with

	// StartTimeout bounds the wait for the helper's hello, which comes after its
	// look at the host. 0: 60 seconds.
	StartTimeout time.Duration
	// Patience bounds the wait after a cancel or a shutdown until the helper is
	// killed. It must be longer than the helper's own ladder (2 seconds of grace
	// and the bounded wait after the kill). 0: 20 seconds.
	Patience time.Duration
}

// Command is one command to run.
type Command struct {
	Argv   []string          // at least the name of the program
	Env    map[string]string // requested; the policy's env_allow decides what arrives
	Cwd    string            // absolute
	Policy *protocol.Policy  // replaces the base policy; nil: the base applies
	Limits *protocol.Limits  // replaces the policy's limits; nil: those apply

	// Stdin is copied to the command until it is at its end, fails, or the command
	// has ended. A Read that is still blocked then is left behind: its goroutine
	// ends when Read returns. nil: the command's input is at its end at once,
	// unless OpenStdin is set.
	Stdin io.Reader
	// OpenStdin keeps the input open for Execution.Write and CloseStdin.
	OpenStdin bool

	// Stdout and Stderr receive the output, in order per stream, from one
	// goroutine; nil drops it. A writer that blocks holds the command back, and
	// holds back every other answer of this helper. One that fails cancels the
	// command.
	Stdout, Stderr io.Writer
}

// Result is how an execution ended. Read Code for the exit status (128+n for a
// signal), TimedOut and Cancelled for who stopped it.
type Result struct{ protocol.ExecExit }

const (
	defaultPeer     = "sandboxd-broker"
	defaultStart    = 60 * time.Second
	defaultPatience = 20 * time.Second
	firstChunk      = 64 << 10  // bytes of one exec_stdin frame, at first
	stdinChunk      = 512 << 10 // the same, of a reader that has more
	tokenBytes      = 16
)

func (o Options) withDefaults() Options {
	if o.Peer == "" {
		o.Peer = defaultPeer
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStart
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	return o
}
