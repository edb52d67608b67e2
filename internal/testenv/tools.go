package testenv

import (
	"os/exec"
	"testing"
)

// Tool returns the path of a program that a test runs, or skips the test for the
// feature "tool:NAME". python3 is the system's own, which alone sees the modules
// that scripts/setup installs.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	look := name
	if name == "python3" {
		look = "/usr/bin/python3"
	}
	path, err := exec.LookPath(look)
	if err != nil {
		Skip(tb, "tool:"+name, err.Error()+"; scripts/setup test installs it")
	}
	return path
}
