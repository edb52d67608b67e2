//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// noJail takes the arguments of run and runs the command as it is.
const noJail = `#!/bin/sh
while [ "$1" != -- ]; do
	case $1 in
	--workspace) cd "$2"; shift ;;
	--env) export "$2"; shift ;;
	esac
	shift
done
shift
exec "$@"
`

// TestDemo runs the last step of make run with a binary that is built already: it shows a
// jail, and fails where there is none.
func TestDemo(t *testing.T) {
	root := testenv.Root(t)
	if out := asked(t, testenv.Tool(t, "make"), "-n", "-C", root, "run"); !strings.Contains(out, "scripts/setup run\n") || !strings.Contains(out, "\nscripts/demo") {
		t.Errorf("make run does:\n%s", out)
	}
	script, err := os.ReadFile(filepath.Join(root, "scripts", "demo"))
	if err != nil {
		t.Fatal(err)
	}
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		home := testenv.TempDir(t, u)
		demo, fake := filepath.Join(home, "tree", "scripts", "demo"), filepath.Join(home, "no-jail")
		if err := os.MkdirAll(filepath.Dir(demo), 0o755); err != nil {
			t.Fatal(err)
		}
		writeMode(t, demo, string(script), 0o755)
		writeMode(t, fake, noJail, 0o755)
		write(t, filepath.Join(home, ".ssh"), "a key")
		give(t, home, u)
		run := func(args ...string) (string, error) {
			cmd := exec.Command("env", args...)
			cmd.Dir, cmd.Env = home, os.Environ()
			testenv.As(t, cmd, testenv.User{Name: u.Name, UID: u.UID, GID: u.GID, Home: home})
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		shows := func(out string, err error, lines ...string) {
			t.Helper()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			for _, want := range append(lines, "hello from the jail", "workspace:     can be written", "/etc:          cannot be written", "sandboxd: enforced      bwrap") {
				if !strings.Contains(out, want+"\n") {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
		}
		out, err := run("HOME="+home, demo, testenv.Binary(t))
		shows(out, err, "your home:     cannot be written", "~/.ssh:        not there")
		out, err = run("-u", "HOME", demo, testenv.Binary(t))
		shows(out, err)

		out, err = run("HOME="+home, demo, fake)
		if err == nil || !strings.Contains(out, "~/.ssh:        VISIBLE\n") || !strings.Contains(out, "your home:     CAN BE WRITTEN\n") {
			t.Errorf("without a jail: %v\n%s", err, out)
		}
		if out, err := run(demo); err == nil || !strings.Contains(out, "./sandboxd is not there; make build makes it") {
			t.Errorf("without a binary: %v\n%s", err, out)
		}
		if _, err := os.Lstat(filepath.Join(home, ".sandboxd-demo")); !os.IsNotExist(err) {
			t.Errorf("it leaves something in HOME: %v", err)
		}
	})
}
