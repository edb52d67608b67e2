package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"sandboxd/internal/policy"
	"sandboxd/internal/policy/jsonfile"
	"sandboxd/protocol"
)

// readPolicy reads a policy of the user's own, in either format. The places are
// those of the text, nil where it is msgpack.
func readPolicy(path string) (protocol.Policy, jsonfile.Places, error) {
	b, err := readBounded(path)
	if err != nil {
		return protocol.Policy{}, nil, fmt.Errorf("cannot read the policy: %w", err)
	}
	if packed(b) {
		p, err := policy.Decode(b)
		if err != nil {
			err = fmt.Errorf("cannot use the policy %s (read as msgpack): %w", path, err)
		}
		return p, nil, err
	}
	p, places, err := jsonfile.DecodePlaces(b)
	if err != nil {
		err = fmt.Errorf("cannot use the policy %s:%w", path, err) // path:line:column: ...
	}
	return p, places, err
}

// packed tells msgpack's map, which every policy is, from text.
func packed(b []byte) bool {
	return len(b) > 0 && (b[0]&0xf0 == 0x80 || b[0] == 0xde || b[0] == 0xdf)
}

// readBounded reads no more than a policy may have: a name may lead to a device that
// never ends.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, jsonfile.MaxSize+1))
	if err == nil && len(bytes.TrimSpace(b)) == 0 {
		return nil, errors.New(path + " is empty; `sandboxd policy workspace` prints one to begin with")
	}
	return b, err
}
