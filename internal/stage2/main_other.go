//go:build !linux && !darwin

package stage2

import "os"

// Main says that this system has no stage 2 and returns the usage status.
func Main() int {
	os.Stderr.WriteString("sandboxd: --exec is not built for this system\n")
	return exitUsage
}
