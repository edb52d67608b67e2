// Package policy decodes and validates policy documents, strictly: bytes or a
// value give either a whole valid policy, or the zero policy and an *Error that
// names the key path, what was found, what was expected and what to do.
//
// Its rules are those of PROTOCOL.md, "Policy". They are about spellings alone.
// Whether a path exists, where its links lead and what two paths are after that
// is asked by the plan, of the host; a policy that passes here can still be
// refused there. The package enforces nothing.
package policy

import (
	"fmt"
	"unicode/utf8"

	"sandboxd/protocol"
)

// Bounds of a policy document.
const (
	MaxPath    = 4095 // bytes of one path: PATH_MAX less the terminating NUL
	MaxEntries = 2800 // entries of all lists together: what bubblewrap's 9,000 arguments leave
)

// Error says which part of a policy is wrong.
type Error struct {
	Path string // key path, such as "mounts[2].access"; "" is the document
	Msg  string // what was found, what was expected, what to do
}

// Error gives "mounts[2].access: found ...".
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Msg
	}
	return e.Path + ": " + e.Msg
}

func fail(path, format string, args ...any) error {
	return &Error{Path: path, Msg: fmt.Sprintf(format, args...)}
}

// Validate applies every rule beyond types to a value, however it was made. The
// error is an *Error. Paths may still hold the slashes that Normalise takes
// away; overlaps are judged as if they were gone. Repeated entries in the lists
// of roots, of protected paths, of names and of host patterns are harmless and
// allowed; a mount path that is repeated is not.
func Validate(p protocol.Policy) error {
	for _, check := range []func(protocol.Policy) error{
		checkCount, checkPaths, checkMounts, checkNetwork, checkEnv,
	} {
		if err := check(p); err != nil {
			return err
		}
	}
	return checkLimits(p.Limits)
}

// list is one list of a policy with its key.
type list struct {
	key     string
	entries int
}

func checkCount(p protocol.Policy) error {
	total := 0
	for _, l := range []list{
		{"writable_roots", len(p.WritableRoots)}, {"readable_roots", len(p.ReadableRoots)},
		{"protected", len(p.Protected)}, {"mounts", len(p.Mounts)},
		{"network.allow", len(p.Network.Allow)}, {"env_allow", len(p.EnvAllow)},
	} {
		if total+l.entries > MaxEntries {
			return fail(index(l.key, MaxEntries-total), "%s", tooMany())
		}
		total += l.entries
	}
	return nil
}

func tooMany() string {
	return fmt.Sprintf("found more than %d entries in all lists together, expected at most that; name a common parent directory instead", MaxEntries)
}

func index(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }

// maxQuoted bounds how much of a value a message repeats.
const maxQuoted = 200

// quote shows a value on one line, without bytes that could drive a terminal.
func quote(s string) string {
	if len(s) <= maxQuoted {
		return fmt.Sprintf("%q", s)
	}
	cut := maxQuoted
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%q... (%d bytes)", s[:cut], len(s))
}
