package seatbelt

import (
	"fmt"
	"strings"
	"testing"

	"sandboxd/internal/host"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name string
		a    Attempt
		want host.State
		says string
	}{
		{"works", Attempt{}, host.Works, ""},
		{"no program", Attempt{Missing: true}, host.Absent, Path},
		{"nested", Attempt{Exit: 71, Stderr: "sandbox-exec: sandbox_apply: Operation not permitted\n"}, host.Absent, "already runs in a sandbox"},
		{"71 for another reason", Attempt{Exit: 71, Stderr: "sandbox-exec: fork: Resource temporarily unavailable"}, host.Unsure, "exit code 71"},
		{"malformed", Attempt{Exit: 65, Stderr: "sandbox-exec: unbound variable: x"}, host.Unsure, "unbound variable"},
		{"slow", Attempt{TimedOut: true}, host.Unsure, "in time"},
		{"no memory", Attempt{StartErr: "cannot allocate memory"}, host.Unsure, "cannot allocate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why := Classify(c.a)
			if got != c.want || !strings.Contains(why, c.says) || (why == "") != (got == host.Works) {
				t.Errorf("%d, %q; want %d with %q", got, why, c.want, c.says)
			}
		})
	}
}

func TestLaunch(t *testing.T) {
	for exit, want := range map[int]string{65: "refuses the profile", 71: "in a sandbox already", 1: "exit code 1"} {
		if got := Launch(exit, "sandbox-exec: no\nmore"); !strings.Contains(got, want) || !strings.Contains(got, `"sandbox-exec: no"`) {
			t.Errorf("Launch(%d) = %q, want %q in it", exit, got, want)
		}
	}
}

// What is denied by the data volume's name is denied by the usual one as well.
func TestBothNames(t *testing.T) {
	for path, want := range map[string]string{
		"/Users/u/x":              "[/Users/u/x " + dataVolume + "/Users/u/x]",
		dataVolume + "/Users/u/x": "[/Users/u/x " + dataVolume + "/Users/u/x]",
		dataVolume:                "[" + dataVolume + "]",
		"/":                       "[/]",
	} {
		if got := fmt.Sprint(bothNames(path)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// Arguments are counted as the kernel counts them: with a NUL and a pointer each.
func TestArgvSize(t *testing.T) {
	if n := ArgvSize([]string{"", "ab"}); n != 9+11 {
		t.Errorf("%d bytes", n)
	}
}

func TestRoomForProcesses(t *testing.T) {
	for _, c := range []struct {
		running int
		ceiling uint64
		room    bool
	}{{100, 116, true}, {100, 115, false}, {0, 16, true}, {0, 1, false}, {-1, 1 << 40, false}} {
		if got := RoomForProcesses(c.running, c.ceiling); (got == "") != c.room {
			t.Errorf("%d of %d: %q, want room: %t", c.running, c.ceiling, got, c.room)
		}
	}
}
