//go:build linux

package e2e

import (
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// Where nothing enforces the fence the user may accept that, but not against
// SANDBOXD_FENCE_REQUIRED=1.
func TestFenceRequired(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := mode{"degraded", t, u, testenv.TempDir(t, u)}
		run := func(required string) (string, int) {
			helper := m.command() // makes the bubblewrap that fails
			cmd := m.as("filtered", "run", "--preset", "fence", "--bwrap", helper.Args[3], "--allow-degraded", "--", "echo", "ran")
			cmd.Env = append(cmd.Env, "SANDBOXD_FENCE_REQUIRED="+required)
			cmd.Dir = m.dir
			testenv.As(t, cmd, u)
			out, _ := cmd.CombinedOutput()
			return string(out), cmd.ProcessState.ExitCode()
		}
		if out, code := run("1"); code != 125 || strings.Contains(out, "ran\n") {
			t.Errorf("required: exit %d: %s", code, out)
		}
		if out, code := run("0"); code != 0 || !strings.Contains(out, "ran\n") || !strings.Contains(out, "degraded") {
			t.Errorf("the control: exit %d: %s", code, out)
		}
	})
}
