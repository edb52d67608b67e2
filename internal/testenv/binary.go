package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// BinaryEnv names a sandboxd binary that is built already. scripts/test sets it, so
// that one run builds once and the ordinary user, who has no build cache, needs no
// compiler.
const BinaryEnv = "SANDBOXD_TEST_BINARY"

// Binary returns the path of a sandboxd binary that every user can execute. Without
// BinaryEnv it is built at the first call, and removed by RunMain: a package that
// calls Binary has a TestMain that calls RunMain.
func Binary(tb testing.TB) string {
	tb.Helper()
	path, err := BinaryPath()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// BinaryPath is Binary for an Example, which has no testing.TB.
func BinaryPath() (string, error) {
	path, err := binary()
	if err != nil {
		return "", fmt.Errorf("cannot build sandboxd for the tests: %w", err)
	}
	return path, nil
}

var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(BinaryEnv); path != "" {
		_, err := os.Stat(path)
		return path, err
	}
	dir, err := os.MkdirTemp("", "sandboxd-bin-")
	if err != nil {
		return "", err
	}
	builtDir = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sandboxd")
	return path, Build(path, "sandboxd/cmd/sandboxd")
})

var builtDir string

// Build compiles a package of this module: static, without the small stage 2, and without
// paths of this machine.
func Build(path, pkg string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return os.Chmod(path, 0o755)
}

// RunMain is for a TestMain: it runs the tests, removes what Binary built and
// returns the exit code.
func RunMain(m *testing.M) int {
	defer Cleanup()
	heed()
	return m.Run()
}

// heed takes note of signals that this process was started to ignore, as nohup(1) does it:
// what a test starts would ignore them as well, and some are to be ended by one.
func heed() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig) // execve(2) resets what is handled
		}
	}
}

// Cleanup removes what Binary built, for a TestMain that cannot use RunMain.
func Cleanup() {
	if builtDir != "" {
		os.RemoveAll(builtDir)
	}
}
