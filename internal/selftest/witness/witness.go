// Package witness holds the self-test's payloads: what runs inside the jail, or
// outside as a control. Each tries what it is told, says honestly what came of it,
// and performs an effect that its policy allows, so that a payload that never ran
// does not look like one that was denied everything. They are roles of the binary
// itself, so that no probe depends on a shell, python or curl in the jail.
//
// What it does not protect: nothing at all. It judges nothing either; whoever
// started it compares the answers.
package witness

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Prefix begins the name of every role.
const Prefix = "--probe-"

// Leash names a variable that says that standard input is a pipe whose other end the
// self-test holds. What it started outside the jail ends with it, even if it is killed.
const Leash = "SANDBOXD_SELFTEST_LEASH"

// tied ends this process when the leash is cut. One whose parent did not pass the pipe
// on has none.
func tied() {
	info, err := os.Stdin.Stat()
	if os.Getenv(Leash) == "" || err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// tie passes the leash on to a child.
func tie(cmd *exec.Cmd) *exec.Cmd {
	if os.Getenv(Leash) != "" {
		cmd.Stdin = os.Stdin
	}
	return cmd
}

// The words of an answer. A line of output is "KEY WORD [DETAIL]".
const (
	OK          = "ok"          // the action succeeded; DETAIL is what it found, in hex
	Denied      = "denied"      // it failed; DETAIL is why
	Unsupported = "unsupported" // this kernel has no such thing
)

// role is one payload. It reports through r; args are its own.
type role struct {
	name, help string
	run        func(r *reporter, args []string)
}

func roles() []role {
	return append([]role{
		{"file", "ACTION=PATH...: file system actions", files},
		{"search", "DIR: prints every readable byte below DIR", search},
		{"replant", "ANCESTOR PATH TEXT: moves ANCESTOR away and makes PATH anew", replant},
		{"link", "TARGET PATH: makes a symbolic link", link},
		{"env", "NAME...: looks for environment variables", environment},
		{"cmdline", "PID TEXT VALUE: looks for text in what /proc shows of a process", cmdline},
		{"connect", "NETWORK ADDRESS: connects to a listener", connect},
		{"memory", "BYTES: touches that much memory", memory},
		{"grow", "PATH BYTES: writes a file of that size", grow},
		{"flood", "BYTES: writes that much to standard output", flood},
		{"hostile", "KEY=VALUE...: tries everything", hostile},
	}, platformRoles()...)
}

// Role reports whether arg names a role of this package.
func Role(arg string) bool { return strings.HasPrefix(arg, Prefix) }

// Main runs the role that args[0] names. The next two arguments are a nonce, which
// frames the output, and a file to which the nonce is written as the allowed effect
// ("-" for none). The exit status is 0 if the role ran to its end, whatever came of
// its actions, and 2 for a usage error.
func Main(args []string) int {
	tied()
	if len(args) > 0 && args[0] == Prefix+"stay" {
		stay(args[1:])
		return 0
	}
	for _, ro := range roles() {
		if len(args) >= 3 && args[0] == Prefix+ro.name {
			r := &reporter{nonce: args[1], effect: args[2]}
			r.line("begin", r.nonce)
			r.act()
			ro.run(r, args[3:])
			r.line("end", r.nonce)
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, "sandboxd: --probe-ROLE NONCE EFFECT [ARG...] is internal to the self-test; type `sandboxd self-test`")
	return 2
}

type reporter struct{ nonce, effect string }

// line writes at once: the next action may be the last.
func (r *reporter) line(words ...string) {
	os.Stdout.WriteString(strings.Join(words, " ") + "\n")
}

// act performs the allowed effect.
func (r *reporter) act() {
	if r.effect != "-" {
		r.answer("effect", "", os.WriteFile(r.effect, []byte(r.nonce), 0o644))
	}
}

// answer reports one action; found is shown in hex where it succeeded.
func (r *reporter) answer(key, found string, err error) {
	switch {
	case err == nil:
		r.line(key, OK, hex.EncodeToString([]byte(found)))
	case lacks(err):
		r.line(key, Unsupported, err.Error())
	default:
		r.line(key, Denied, err.Error())
	}
}

// lacks tells a kernel without the thing from one that refuses it.
func lacks(err error) bool {
	for _, e := range unsupported {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.Is(err, errLacks)
}

var (
	errLacks = errors.New("not on this system")
	errNone  = errors.New("not found")
)

func environment(r *reporter, names []string) {
	for _, name := range names {
		value, there := os.LookupEnv(name)
		err := errNone
		if there {
			err = nil
		}
		r.answer(name, value, err)
	}
}

func memory(r *reporter, args []string) {
	const step = 4 << 20
	var kept [][]byte
	for n := size(args[0]); n > 0; n -= step {
		b := make([]byte, step)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
	}
	r.answer("memory", fmt.Sprint(len(kept)*step), nil)
}

func flood(r *reporter, args []string) {
	b := []byte(strings.Repeat("flood", 13106) + "\n")
	for n := size(args[0]); n > 0; n -= len(b) {
		if _, err := os.Stdout.Write(b); err != nil {
			return
		}
	}
	// The output past the cap is discarded: only the file says that all was written.
	r.act()
}

func grow(r *reporter, args []string) {
	ignoreFileSize()
	f, err := os.Create(args[0])
	if err == nil {
		b := make([]byte, 64<<10)
		for n := size(args[1]); n > 0 && err == nil; n -= len(b) {
			_, err = f.Write(b)
		}
		f.Close()
	}
	r.answer("grow", "", err)
}

func size(s string) int {
	var n int
	fmt.Sscan(s, &n)
	return n
}

var unsupported = []error{syscall.ENOSYS}
