//go:build unix && !linux

package cli

import "os"

// sameOpening is not known here.
func sameOpening(_, _ *os.File) bool { return true }
