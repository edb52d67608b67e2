// Package jsonfile reads policy documents that people write: JSON with comments
// and trailing commas, the keys and rules of the msgpack document, and errors that
// name line and column.
//
// The text is turned into msgpack and goes through policy.Decode, so that there is
// one set of rules. It is apart from package policy because the jail's own start
// has no use for a JSON reader. It adds no rule and no protection of its own.
package jsonfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"sandboxd/internal/policy"
	"sandboxd/protocol"
)

// MaxSize is the largest document that is read, in bytes: that of the base policy.
const MaxSize = protocol.MaxPolicy

// Error says where in the text a policy is wrong.
type Error struct {
	Line, Column int    // from 1; the column counts characters
	Path         string // key path, such as "mounts[2].access"; "" is the document
	Msg          string
}

// Error gives "3:14: mounts[2].access: found ...", which reads well behind the
// file's name and a colon.
func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg)
	}
	return fmt.Sprintf("%d:%d: %s: %s", e.Line, e.Column, e.Path, e.Msg)
}

// Decode reads a policy document. The policy is valid and normalised, as
// policy.Decode gives it. On error, which is an *Error, it is the zero value.
func Decode(b []byte) (protocol.Policy, error) {
	p, _, err := DecodePlaces(b)
	return p, err
}

// Places say where the values of a document stand.
type Places map[string]int // key path, such as "mounts[2].access" -> line, from 1

// DecodePlaces is Decode, and says on which line each value begins.
func DecodePlaces(b []byte) (protocol.Policy, Places, error) {
	p, t, err := decode(b)
	if err != nil {
		return protocol.Policy{}, nil, err
	}
	return p, t.lines(), nil
}

func decode(b []byte) (p protocol.Policy, t translator, err error) {
	if len(b) > MaxSize {
		return p, t, &Error{Line: 1, Column: 1, Msg: fmt.Sprintf("found %d bytes, expected at most %d", len(b), MaxSize)}
	}
	// Some editors begin a file with a byte order mark.
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	if at, deep := tooDeep(b); deep {
		return p, t, newError(b, at, "", fmt.Sprintf("found nesting deeper than %d", maxDepth))
	}
	// The reader wants every line comment to end in a newline, the last one too.
	v, err := hujson.Parse(append(bytes.Clone(b), '\n'))
	if err != nil {
		return p, t, syntaxError(b, err)
	}
	t = translator{text: b, places: map[string][]place{}}
	if err := t.value(v, "", v.StartOffset); err != nil {
		return p, t, err
	}
	p, err = policy.Decode(t.out)
	var rule *policy.Error
	if errors.As(err, &rule) {
		return p, t, newError(b, t.find(rule), rule.Path, words.Replace(rule.Msg)+advice(rule))
	}
	return p, t, err
}

// keys are those of each map, by the name of the key that holds it.
func keys() map[string]string {
	return map[string]string{
		"":        "v, writable_roots, readable_roots, protected, mounts, network, limits, env_allow, scratch",
		"mounts":  "path, access, required",
		"network": "mode, and with mode proxy also allow, proxy",
		"limits":  "cpu_s, wall_s, mem_bytes, pids, fsize_bytes, output_bytes",
	}
}

// advice helps whoever writes by hand, and does not have the table of keys at hand.
func advice(e *policy.Error) string {
	if e.Msg != "unknown key" && e.Msg != "missing key" {
		return ""
	}
	in, _, inside := strings.Cut(e.Path, ".")
	if !inside {
		in = ""
	}
	in, _, _ = strings.Cut(in, "[")
	if list := keys()[in]; list != "" {
		return "; expected exactly " + list
	}
	return ""
}

// words are JSON's for what the policy's own encoding calls otherwise.
var words = strings.NewReplacer("found nil", "found null", "found map", "found object", "expected map", "expected object", "found float", "found number with a fraction or an exponent")

// syntaxError takes the place out of the reader's message. The rest of it may
// repeat the text, which is not to drive a terminal.
func syntaxError(b []byte, err error) error {
	var line, column int
	msg := err.Error()
	if _, e := fmt.Sscanf(msg, "hujson: line %d, column %d:", &line, &column); e != nil {
		return newError(b, 0, "", printable(msg))
	}
	at := 0
	for range line - 1 {
		at += bytes.IndexByte(b[at:], '\n') + 1
	}
	_, msg, _ = strings.Cut(msg, ": ")
	_, msg, _ = strings.Cut(msg, ": ")
	return newError(b, at+column-1, "", printable(msg))
}

const maxMessage = 200 // bytes of a reader's message

func printable(s string) string {
	if len(s) > maxMessage {
		s = s[:maxMessage] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// newError turns an offset into a line and a column.
func newError(b []byte, at int, path, msg string) error {
	before := b[:min(max(at, 0), len(b))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return &Error{
		Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(before[start:]) + 1,
		Path: path, Msg: msg,
	}
}
