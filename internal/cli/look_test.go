package cli

import (
	"strings"
	"testing"
	"time"
)

// A look that a command has led to a file system that hangs is given up, and that is said.
func TestLookIsBounded(t *testing.T) {
	hung := make(chan struct{})
	defer close(hung)
	if got := lookedWithin(time.Millisecond, func() []string { <-hung; return nil }); len(got) != 1 || !strings.Contains(got[0], "is not known") {
		t.Errorf("got %q", got)
	}
	if got := lookedWithin(time.Minute, func() []string { return []string{"a"} }); len(got) != 1 || got[0] != "a" {
		t.Errorf("got %q", got)
	}
	if got := lookedWithin(time.Minute, nil); got != nil {
		t.Errorf("got %q", got)
	}
}
