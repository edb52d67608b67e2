//go:build !linux && !darwin

package gitidentity

import "errors"

// Publish is refused: only Linux and macOS reach the destination by descriptor.
func Publish(Request) error {
	return errors.New("cannot publish a git identity on this platform: only Linux and macOS can")
}
