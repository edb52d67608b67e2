package gitidentity

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sandboxd/internal/policy"
	"sandboxd/protocol"
)

// Bounds, in bytes.
const (
	MaxArgument = 96 << 10 // a policy in an argument, decoded: execve's bound is 128 KiB
	MaxEntries  = 64 << 10
	MaxOutput   = 64 << 10
)

// ErrUsage is a wrong number of operands.
var ErrUsage = errors.New("expected three operands: POLICY_BASE64 (or -), WORKSPACE, ENTRIES_JSON")

// Request is what the operands ask for.
type Request struct {
	Policy    protocol.Policy
	Workspace string
	Name      *string // nil: not given
	Email     *string
}

// Parse reads the operands; stdin is read only where the first one is "-". No error
// holds a value.
func Parse(operands []string, stdin io.Reader) (Request, error) {
	if len(operands) != 3 {
		return Request{}, ErrUsage
	}
	r := Request{Workspace: operands[1]}
	var err error
	if r.Policy, err = readPolicy(operands[0], stdin); err != nil {
		return Request{}, err
	}
	if err := checkWorkspace(r.Workspace); err != nil {
		return Request{}, err
	}
	if err := r.entries(operands[2]); err != nil {
		return Request{}, err
	}
	return r, nil
}

func readPolicy(operand string, stdin io.Reader) (protocol.Policy, error) {
	most, text := MaxArgument, []byte(operand)
	if operand == "-" {
		most = protocol.MaxPolicy
		var err error
		text, err = io.ReadAll(io.LimitReader(stdin, int64(base64.StdEncoding.EncodedLen(most))+2))
		if err != nil {
			return protocol.Policy{}, fmt.Errorf("cannot read the policy from standard input: %w", err)
		}
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	tooLarge := fmt.Errorf("cannot read the policy: it is larger than %d bytes", most)
	if len(text) > base64.StdEncoding.EncodedLen(most) {
		return protocol.Policy{}, tooLarge
	}
	// The package skips line breaks; the operand has none.
	raw, err := base64.StdEncoding.Strict().DecodeString(string(text))
	switch {
	case err != nil || bytes.ContainsAny(text, "\r\n"):
		return protocol.Policy{}, errors.New("cannot read the policy: it is not padded standard base64 in one line")
	case len(raw) > most:
		return protocol.Policy{}, tooLarge
	}
	p, err := policy.Decode(raw)
	if err != nil {
		return protocol.Policy{}, fmt.Errorf("cannot read the policy: %w", err)
	}
	return p, nil
}

// checkWorkspace asks what the policy's decoder asks of a path.
func checkWorkspace(path string) error {
	probe := protocol.Policy{WritableRoots: []string{path}, Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	var bad *policy.Error
	if err := policy.Validate(probe); errors.As(err, &bad) {
		return fmt.Errorf("cannot use the workspace: %s", bad.Msg)
	}
	return nil
}

// entries reads the JSON; the last value of a key wins, as in git.
func (r *Request) entries(text string) error {
	if len(text) > MaxEntries {
		return fmt.Errorf("cannot read the entries: they are larger than %d bytes", MaxEntries)
	}
	shape := errors.New("cannot read the entries: expected a JSON array of [KEY, VALUE] with two strings each")
	var list [][]*string
	d := json.NewDecoder(strings.NewReader(text))
	if !utf8.ValidString(text) || d.Decode(&list) != nil || list == nil {
		return shape
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return shape
	}
	for i, e := range list {
		if len(e) != 2 || e[0] == nil || e[1] == nil {
			return shape
		}
		if strings.ContainsRune(*e[1], 0) {
			return fmt.Errorf("cannot use entry %d: its value holds a NUL", i)
		}
		switch *e[0] {
		case "user.name":
			r.Name = e[1]
		case "user.email":
			r.Email = e[1]
		default:
			return fmt.Errorf("cannot use entry %d: only user.name and user.email can be published", i)
		}
	}
	return nil
}
