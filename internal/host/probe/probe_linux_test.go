package probe

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/testenv"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Role {
		os.Exit(Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func TestFactsOfThisMachine(t *testing.T) {
	f, err := Facts(t.Context(), Options{})
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

// noChildren proves that nothing is left, not even a zombie.
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
			f, err := Facts(t.Context(), Options{Bwrap: script(t, c.body)})
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

// hanging is a trial that never ends, with descendants that leave its session. Each
// writes its pid into dir.
func hanging(dir string) string {
	return fmt.Sprintf(`cd %s
for i in 1 2 3; do (setsid sh -c 'trap "" TERM HUP; echo $$ >pid.$0; while :; do /bin/sleep 0.1; done' $i &); done
while [ ! -s pid.1 ] || [ ! -s pid.2 ] || [ ! -s pid.3 ]; do /bin/sleep 0.01; done
echo $$ >tmp; mv tmp pid.0; while :; do /bin/sleep 0.1; done`, dir)
}

// ended wants every process of a hanging trial to have been there and to be gone.
func ended(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(dir + "/pid.*")
	if err != nil || len(names) != 4 {
		t.Errorf("%v %v: not all of them ran", names, err)
	}
	for _, name := range names {
		b, _ := os.ReadFile(name)
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		if unix.Kill(pid, 0) != unix.ESRCH {
			t.Errorf("%d lives on", pid)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// A deadline and a caller that stops leave nothing of what was tried, wherever it
// went.
func TestEndOfTheTrialKillsEverything(t *testing.T) {
	for name, reason := range map[string]string{"deadline": "in time", "stop": "stopped"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := Options{Bwrap: script(t, hanging(dir)), Deadline: time.Hour}
			if name == "deadline" {
				o.Deadline = 5 * time.Second
			} else {
				go func() {
					testenv.NewMarker(dir, "pid.0").Wait(t)
					cancel()
				}()
			}
			f, err := Facts(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			if f.Bwrap.State != host.Unsure || !strings.Contains(f.Bwrap.Reason, reason) {
				t.Errorf("%+v", f.Bwrap)
			}
			ended(t, dir)
			noChildren(t)
		})
	}
}

func TestDeadlineOfRealBubblewrap(t *testing.T) {
	path, err := FindBwrap("")
	if err != nil || path == "" {
		testenv.Skip(t, "bubblewrap", "not installed")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestRunRealBubblewrap$", "-test.v")
	cmd.Env = append(os.Environ(), "PROBE_TEST_BWRAP="+path)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRunRealBubblewrap is a process of its own for that: run is for one.
func TestRunRealBubblewrap(t *testing.T) {
	path := os.Getenv("PROBE_TEST_BWRAP")
	if path == "" {
		return
	}
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	args := []string{"--unshare-user", "--unshare-pid", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/lib64", "/lib64", "--ro-bind-try", "/lib", "/lib", "--", "/usr/bin/sleep", "1000"}
	out := run(ctx, path, args, nil)
	if !out.TimedOut {
		t.Fatalf("it ended by itself: %+v", out)
	}
	noChildren(t)
}

// What Look reads out of bubblewrap's file is what its --help says, and nothing is
// started for it.
func TestLookReadsTheOptions(t *testing.T) {
	path, _ := FindBwrap("")
	if path == "" {
		testenv.Skip(t, "bwrap", "scripts/setup run installs bubblewrap")
	}
	out, _ := exec.Command(path, "--help").CombinedOutput()
	want := parseHelp(string(out))
	f, err := Look(Options{})
	if err != nil || len(want) < 20 || !maps.Equal(f.Bwrap.Flags, want) {
		t.Errorf("got %v, %v\nwant %v", f.Bwrap.Flags, err, want)
	}
	script := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec /usr/bin/bwrap\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if f, err := Look(Options{Bwrap: script}); err != nil || f.Bwrap.Flags != nil || f.Bwrap.State != host.Unsure {
		t.Errorf("a wrapper: %+v, %v", f.Bwrap, err)
	}
}
