//go:build linux

package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sandboxd/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.RunMain(m)) }

// TestScripts drives the real binary as a person would. scripts/test runs it as
// root and once more as an ordinary user.
func TestScripts(t *testing.T) {
	needJail(t)
	for _, tool := range []string{"git", "gcc", "make", "python3", "node"} {
		testenv.Tool(t, tool)
	}
	bin := filepath.Dir(testenv.Binary(t))
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, ".home")
			e.Setenv("HOME", home)
			e.Setenv("PATH", bin+":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
			return os.Mkdir(home, 0o755)
		},
	})
}

// needJail skips where there is no bubblewrap at all.
func needJail(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/bwrap"); err != nil {
		testenv.Skip(t, "bwrap", "scripts/setup run installs bubblewrap")
	}
}
