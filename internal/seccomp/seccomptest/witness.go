// Package seccomptest compiles and runs the witness (testdata/witness), a program
// that really makes each call which the filters refuse, and says what each filter
// has to answer. It is for tests and enforces nothing.
package seccomptest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Prebuilt is the variable that names a witness compiled elsewhere, for machines
// without a compiler (the kernel matrix).
const Prebuilt = "SANDBOXD_WITNESS"

var (
	build = sync.OnceValues(compile)
	built string // directory to remove
)

// Witness returns the path of the compiled witness: static, readable and executable
// by every user. A host without a C compiler fails the test: a skipped witness
// looks like a denial.
func Witness(tb testing.TB) string {
	tb.Helper()
	path, err := build()
	if err != nil {
		tb.Fatalf("cannot build the witness (install gcc, or set %s): %v", Prebuilt, err)
	}
	return path
}

func compile() (string, error) {
	if path := os.Getenv(Prebuilt); path != "" {
		return path, nil
	}
	_, self, _, ok := runtime.Caller(0)
	if !ok {
		return "", fmt.Errorf("no source path")
	}
	root := filepath.Join(filepath.Dir(self), "..", "..", "..")
	dir, err := os.MkdirTemp("", "sandboxd-witness-")
	if err != nil {
		return "", err
	}
	built = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "witness")
	source := filepath.Join(root, "testdata", "witness", "witness.c")
	out, err := exec.Command("gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-o", path, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
}

// Remove deletes what Witness built; TestMain calls it last.
func Remove() {
	if built != "" {
		os.RemoveAll(built)
	}
}

// Parse reads the witness's output: errno by name. A witness that did not announce
// its end is an error.
func Parse(out []byte) (map[string]int, error) {
	results := map[string]int{}
	done := false
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if lines.Text() == "done" {
			done = true
			continue
		}
		name, value, ok := strings.Cut(lines.Text(), " ")
		errno, err := strconv.Atoi(value)
		if !ok || err != nil {
			return nil, fmt.Errorf("witness printed %q", lines.Text())
		}
		results[name] = errno
	}
	if !done {
		return nil, fmt.Errorf("the witness did not reach its end: %q", out)
	}
	return results, lines.Err()
}

// Run runs a command whose output is the witness's.
func Run(tb testing.TB, cmd *exec.Cmd) map[string]int {
	tb.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%v: %v: %s%s", cmd.Args, err, out, stderr.Bytes())
	}
	results, err := Parse(out)
	if err != nil {
		tb.Fatal(err)
	}
	return results
}
