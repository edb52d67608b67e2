// Package testenv is what the tests share: the sandboxd binary, the ordinary test
// user, skips that are fatal where this kind of host promises the feature, markers
// that say "ready", and checks that nothing is left behind. It protects nothing and
// no production package imports it.
package testenv

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Root returns the top directory of the source tree.
func Root(tb testing.TB) string {
	tb.Helper()
	_, file, _, _ := runtime.Caller(0)
	dir, err := os.Getwd() // a test runs in its package's directory; -trimpath hides file
	if err != nil {
		tb.Fatalf("cannot find the source tree: %v", err)
	}
	for _, start := range []string{dir, filepath.Dir(file)} {
		for at := start; ; at = filepath.Dir(at) {
			if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
				return at
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	tb.Fatalf("cannot find go.mod above %s", dir)
	return ""
}

// TempDir is a fresh directory that the test user owns and can reach: testing's own
// TempDir lies below directories that only their maker may enter.
func TempDir(tb testing.TB, u User) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "sandboxd-test-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	if u.UID != os.Getuid() {
		if err := os.Chown(dir, u.UID, u.GID); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// OutsideTmp is a fresh directory of whoever runs the test, outside the temporary
// directories, where every planted link is refused.
func OutsideTmp(tb testing.TB) string {
	tb.Helper()
	base := "/srv"
	if os.Getuid() != 0 {
		var err error
		if base, err = os.UserHomeDir(); err != nil {
			tb.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp(base, "sandboxd-test-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
