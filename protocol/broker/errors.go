package broker

import (
	"errors"
	"fmt"
	"strings"

	"sandboxd/protocol"
)

// Error is an error frame of the helper. errors.Is matches it with the sentinel of
// its code, whatever the message.
type Error struct {
	Code protocol.Code
	Msg  string
}

// The sentinels, one for each error code of the protocol.
var (
	ErrMalformedFrame = &Error{Code: protocol.CodeMalformedFrame}
	ErrProtoMismatch  = &Error{Code: protocol.CodeProtoMismatch}
	ErrUnknownKind    = &Error{Code: protocol.CodeUnknownKind}
	ErrBusy           = &Error{Code: protocol.CodeBusy}
	ErrNoExec         = &Error{Code: protocol.CodeNoExec}
	ErrBadPolicy      = &Error{Code: protocol.CodeBadPolicy}
	ErrRefused        = &Error{Code: protocol.CodeRefused}
	ErrSpawnFailed    = &Error{Code: protocol.CodeSpawnFailed}
)

func (e *Error) Error() string {
	if e.Msg == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Msg
}

// Is reports whether target is the sentinel of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Msg == "" || t.Msg == e.Msg)
}

var (
	// ErrNotEnforced: the report misses or skips a demanded layer. See NotEnforcedError.
	ErrNotEnforced = errors.New("the policy was not enforced in full")
	// ErrClosed: the helper has ended, or Close or Shutdown was called.
	ErrClosed = errors.New("the helper has ended")
	// ErrStdinClosed: the command no longer takes input.
	ErrStdinClosed = errors.New("the command's standard input is closed")
	// ErrKilled: the helper did not end in time and was killed.
	ErrKilled = errors.New("the helper did not end in time and was killed")
	// ErrProtocol: the helper said something that the protocol does not allow.
	ErrProtocol = errors.New("the helper broke the protocol")
)

// NotEnforcedError lists the layers that Demand Full did not find.
type NotEnforcedError struct {
	Missing []string // tags, as protocol.Missing gives them
	Ran     bool     // false: refused before the command was started
}

func (e *NotEnforcedError) Error() string {
	when := "the command ran, but"
	if !e.Ran {
		when = "the command was not started, since"
	}
	return fmt.Sprintf("%s not all that the policy demands is enforced here: %s", when, strings.Join(e.Missing, ", "))
}

// Unwrap makes errors.Is(err, ErrNotEnforced) true.
func (e *NotEnforcedError) Unwrap() error { return ErrNotEnforced }

// ExitError is a helper that ended with another status than 0.
type ExitError struct {
	Status int    // exit status; -1: ended by a signal
	Cause  string // the status in words
	Stderr string // the end of what it wrote to its standard error
}

func (e *ExitError) Error() string {
	msg := "the helper ended with " + e.Cause
	if last := lastLine(e.Stderr); last != "" {
		msg += ": " + last
	}
	return msg
}

// Unwrap makes errors.Is(err, ErrClosed) true.
func (e *ExitError) Unwrap() error { return ErrClosed }

func lastLine(s string) string {
	s = strings.TrimRight(s, "\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}
