package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/testenv"
)

func TestFactsOfThisMachine(t *testing.T) {
	f, err := Facts(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f.OS != "linux" || f.UID != os.Getuid() || f.TotalRAM < 1<<20 || !f.Seccomp || f.HelperPath == "" {
		t.Errorf("facts: %+v", f)
	}
	if (f.LandlockABI == 0) == (f.LandlockReason == "") {
		t.Errorf("Landlock ABI %d with reason %q", f.LandlockABI, f.LandlockReason)
	}
	if f.Bwrap.Path == "" {
		testenv.Skip(t, "bubblewrap", "not installed")
	}
	if f.Bwrap.State != host.Works || f.Bwrap.Reason != "" || f.Bwrap.Version == "" || !f.Bwrap.Flags["unshare-user"] {
		t.Errorf("bubblewrap: %+v", f.Bwrap)
	}
	noChildren(t)
}

// noChildren proves that nothing is left, not even a zombie; the process is a
// subreaper by now, so whatever was orphaned has come here.
func noChildren(t *testing.T) {
	t.Helper()
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %d, %v", pid, err)
	}
}

// script makes a program that stands for bubblewrap.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bwrap")
	text := "#!/bin/sh\ncase \"$1\" in\n--version) echo bubblewrap 9.9; exit;;\n--help) printf ' --unshare-user X\\n --info-fd FD\\n'; exit;;\nesac\n" + body
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTrialOfOtherPrograms(t *testing.T) {
	for _, c := range []struct {
		name, body string
		state      host.State
		reason     string
	}{
		{"works", "exit 0", host.Works, ""},
		{"fails", "echo boom >&2; exit 7", host.Unsure, `exit code 7 (it said: "boom")`},
		{"out of memory", "echo 'bwrap: Creating new namespace failed: Cannot allocate memory' >&2; exit 1", host.Unsure, "allocate memory"},
		{"killed", "kill -9 $$", host.Unsure, "signal 9"},
		{"gets no environment", "test -z \"$SECRET\" || exit 9", host.Works, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("SECRET", "x")
			f, err := Facts(Options{Bwrap: script(t, c.body)})
			if err != nil {
				t.Fatal(err)
			}
			if f.Bwrap.State != c.state || !strings.Contains(f.Bwrap.Reason, c.reason) || f.Bwrap.Version != "9.9" {
				t.Errorf("%+v", f.Bwrap)
			}
			noChildren(t)
		})
	}
}

func TestDeadlineKillsEverything(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	// A child that outlives its parent and ignores TERM.
	body := fmt.Sprintf("(trap '' TERM; echo up >%s; while :; do /bin/sleep 0.1; done) & wait", pids)
	f, err := Facts(Options{Bwrap: script(t, body), Deadline: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if f.Bwrap.State != host.Unsure || !strings.Contains(f.Bwrap.Reason, "in time") {
		t.Errorf("%+v", f.Bwrap)
	}
	if _, err := os.Stat(pids); err != nil {
		t.Fatalf("the child never ran: %v", err)
	}
	// The child's own short-lived sleep may fall here too; it ends by itself.
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err == unix.ECHILD {
			return
		}
	}
	t.Error("a child is left")
}

func TestDeadlineOfRealBubblewrap(t *testing.T) {
	path, err := FindBwrap("")
	if err != nil || path == "" {
		testenv.Skip(t, "bubblewrap", "not installed")
	}
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	args := []string{"--unshare-user", "--unshare-pid", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/lib64", "/lib64", "--ro-bind-try", "/lib", "/lib", "--", "/usr/bin/sleep", "1000"}
	out := run(path, args, nil, time.Now().Add(300*time.Millisecond))
	if !out.TimedOut {
		t.Fatalf("it ended by itself: %+v", out)
	}
	noChildren(t)
}
