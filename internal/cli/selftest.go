package cli

import (
	"os"

	"sandboxd/internal/selftest"
)

// selfTest is `sandboxd self-test`.
func selfTest(args []string, s System) int {
	stderr, ok := s.Stderr.(*os.File)
	stdout, file := s.Stdout.(*os.File)
	return selftest.Main(args, selftest.System{
		Stdout: s.Stdout, Stderr: s.Stderr, Executable: s.Executable,
		Terminal: ok && selftest.IsTerminal(stderr), Closed: file && ok && selftest.Closed(stdout, stderr),
	})
}
