//go:build !linux

package landlock

import (
	"errors"

	"sandboxd/internal/stage2/spec"
)

var errNoLandlock = errors.New("only Linux has Landlock")

// Ruleset cannot exist on this system.
type Ruleset struct {
	ABI              int
	Net, Scope, Unix bool
}

// ABI always returns 0 and why.
func ABI() (int, error) { return 0, errNoLandlock }

// Build always returns a skip.
func Build(spec.Landlock) (*Ruleset, []spec.Skip, error) {
	return nil, []spec.Skip{{Tag: "landlock", Reason: errNoLandlock.Error()}}, nil
}

// Enforce always fails.
func (*Ruleset) Enforce() error { return errNoLandlock }

// Close does nothing.
func (*Ruleset) Close() {}
