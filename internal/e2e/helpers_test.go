//go:build linux

package e2e

import (
	"os"
	"strconv"
	"testing"
)

func uintText(n uint64) string { return strconv.FormatUint(n, 10) }

func writeMode(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	write(t, path, text)
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
