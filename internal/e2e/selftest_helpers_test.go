//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/selftest"
	"sandboxd/internal/testenv"
)

// selfTestRun is what one run of the self-test said.
type selfTestRun struct {
	selftest.Run
	code int
	text string
}

func (r selfTestRun) finding(t *testing.T, probe string) selftest.Finding {
	t.Helper()
	for _, f := range r.Probes {
		if f.Probe == probe {
			return f
		}
	}
	t.Fatalf("there is no probe %s in %s", probe, r.text)
	return selftest.Finding{}
}

// enforced names the probes that the run calls enforced.
func (r selfTestRun) enforced() []string {
	var names []string
	for _, f := range r.Probes {
		if f.Verdict == selftest.Enforced {
			names = append(names, f.Probe)
		}
	}
	return names
}

// selfTest runs argv, which ends in the self-test's own arguments, with --json.
func selfTest(t *testing.T, u testenv.User, argv ...string) selfTestRun {
	t.Helper()
	cmd := exec.Command(argv[0], append(argv[1:], "--json")...)
	testenv.As(t, cmd, u)
	cmd.Dir = "/"
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	r := selfTestRun{}
	err := cmd.Run()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	r.code, r.text = cmd.ProcessState.ExitCode(), out.String()
	if err := json.Unmarshal(out.Bytes(), &r.Run); err != nil {
		t.Fatalf("no JSON (%v): %s %s", err, &out, &stderr)
	}
	return r
}

// fixtureDir is a directory outside the scratch mount that u owns.
func fixtureDir(t *testing.T, u testenv.User) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sandboxd-test-")
	if err != nil {
		testenv.Skip(t, "var-tmp", err.Error())
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err == nil && u.UID != os.Getuid() {
		err = os.Chown(dir, u.UID, u.GID)
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// nothingLeft fails if the fixture's directory is not empty.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s is left behind", e.Name())
	}
}

// hostileTool compiles one of testdata/hostile's C programs.
func hostileTool(t *testing.T, name string) string {
	t.Helper()
	gcc := testenv.Tool(t, "gcc")
	dir, err := os.MkdirTemp("", "sandboxd-hostile-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(testenv.Root(t), "testdata", "hostile", name+".c")
	bin := filepath.Join(dir, name)
	if out, err := exec.Command(gcc, "-Wall", "-Wextra", "-Werror", "-o", bin, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return bin
}

// fakeBwrap is testdata/hostile/bwrap under the name of what it leaves out.
func fakeBwrap(t *testing.T, mode string) string {
	t.Helper()
	testenv.Tool(t, "bash")
	b, err := os.ReadFile(filepath.Join(testenv.Root(t), "testdata", "hostile", "bwrap"))
	if err != nil {
		t.Fatal(err)
	}
	dir := testenv.TempDir(t, testenv.Me())
	path := filepath.Join(dir, mode)
	if err := os.WriteFile(path, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// needBwrap skips where the host's bubblewrap makes no jail.
func needBwrap(t *testing.T, u testenv.User) {
	t.Helper()
	dir := testenv.TempDir(t, u)
	cmd := exec.Command(testenv.Binary(t), "run", "--workspace", dir, "--", "true")
	testenv.As(t, cmd, u)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		testenv.Skip(t, "bwrap", strings.TrimSpace(string(out)))
	}
}

// denied runs the self-test on a kernel that answers one system call with an errno.
func denied(t *testing.T, u testenv.User, errno syscall.Errno, call string, args ...string) selfTestRun {
	t.Helper()
	argv := []string{hostileTool(t, "deny"), uintText(uint64(errno)), call, "--", testenv.Binary(t), "self-test"}
	return selfTest(t, u, append(argv, args...)...)
}
