package cli

import (
	"os"

	"sandboxd/internal/selftest"
)

// selfTest is `sandboxd self-test`.
func selfTest(args []string, s System) int {
	stderr, ok := s.Stderr.(*os.File)
	stdout, is := file(s.Stdout)
	return selftest.Main(args, selftest.System{
		Stdout: s.Stdout, Stderr: s.Stderr, Executable: s.Executable,
		Terminal: ok && selftest.IsTerminal(stderr), Closed: is && ok && selftest.Closed(stdout, stderr),
	})
}
