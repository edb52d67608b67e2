//go:build !linux

package selftest

import (
	"errors"
	"fmt"
)

const sharedMemory = "/dev/shm"

func sweepMemory() {}

func (sh *shared) plantInMemory(string, string) error { return errors.ErrUnsupported }

// addressSize is that of a socket's address on macOS (unix(4)), with the NUL.
const addressSize = 104

func short(path string) (string, func(), error) {
	if len(path) >= addressSize {
		return "", nil, fmt.Errorf("%q is too long for the address of a socket; give a shorter --dir", path)
	}
	return path, func() {}, nil
}
