//go:build !linux

package seccomp

import (
	"errors"

	"sandboxd/internal/stage2/spec"
)

// ErrUnsupported says that this system has no seccomp filters.
var ErrUnsupported = errors.New("seccomp filters are a feature of Linux")

// Install always fails with ErrUnsupported.
func Install(spec.Seccomp) error { return ErrUnsupported }

// Supported always returns ErrUnsupported.
func Supported() error { return ErrUnsupported }
