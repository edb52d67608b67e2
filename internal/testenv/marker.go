package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Patience is how long a marker is waited for. It is a bound for a test that is
// broken, not a measure of anything: a test that passes never waits for it.
const Patience = 60 * time.Second

// Marker is a file that a process under test renames into place when it is ready.
type Marker struct{ path string }

// NewMarker returns a marker in dir, which must be a directory that the process
// under test may write.
func NewMarker(dir, name string) Marker { return Marker{filepath.Join(dir, name)} }

// Path is where the marker appears.
func (m Marker) Path() string { return m.path }

// Shell is the shell command that sets the marker, content and all at once.
func (m Marker) Shell(content string) string {
	q := quote(m.path)
	return fmt.Sprintf("printf %%s %s >%s.new && mv %s.new %s", quote(content), q, q, q)
}

// Wait waits for the marker and returns its content.
func (m Marker) Wait(tb testing.TB) string {
	tb.Helper()
	var content string
	Eventually(tb, "the marker "+m.path, func() bool {
		b, err := os.ReadFile(m.path)
		content = string(b)
		return err == nil
	})
	return content
}

// Eventually polls cond until it is true and fails the test after Patience.
func Eventually(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	for end := time.Now().Add(Patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("%s did not come about in %v", what, Patience)
		}
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Pause is one step of a loop that looks for something.
func Pause() { time.Sleep(5 * time.Millisecond) }
