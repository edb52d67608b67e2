package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
)

// session is one `sandboxd run` that was told to begin and has begun.
type session struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	pidNS  string // of the jail
}

// begin runs a script in the jail up to the point where it sets the marker "ready"
// in its workspace. TERM ends the script's own sleep.
func begin(t *testing.T, script string) session {
	t.Helper()
	return beginBy(t, script)
}

// beginBy has another program start it.
func beginBy(t *testing.T, script string, by ...string) session {
	t.Helper()
	needJail(t)
	u := testenv.Me()
	dir := testenv.TempDir(t, u)
	ready := testenv.NewMarker(dir, "ready")
	argv := append(by, testenv.Binary(t), "run", "--", "sh", "-c", strings.ReplaceAll(script, "READY", ready.Shell("now")))
	s := session{cmd: exec.Command(argv[0], argv[1:]...), stderr: &bytes.Buffer{}}
	s.cmd.Dir, s.cmd.Stderr = dir, s.stderr
	s.cmd.Env = append(os.Environ(), "HOME=/nonexistent")
	// A process group of its own is not orphaned, so it can be stopped.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := os.WriteFile(filepath.Join(dir, "work"), nil, 0o644); err != nil { // an empty directory is not guarded
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	ready.Wait(t)
	s.pidNS = jailOf(t, s.cmd.Process.Pid)
	return s
}

// jailOf finds the pid namespace below a process that is not this process's own.
func jailOf(t *testing.T, pid int) string {
	t.Helper()
	own := testenv.Processes()[os.Getpid()].PidNS
	for _, p := range testenv.Descendants(pid) {
		if p.PidNS != "" && p.PidNS != own {
			return p.PidNS
		}
	}
	t.Fatal("no process of the jail is to be seen")
	return ""
}

func (s session) code(t *testing.T) int {
	t.Helper()
	s.cmd.Wait()
	testenv.Eventually(t, "an empty jail", func() bool { return len(testenv.InPidNS(s.pidNS)) == 0 })
	return s.cmd.ProcessState.ExitCode()
}

// What nohup(1) has a program ignore does not end the command, and what it does not
// does.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	const script = `READY; sleep 1; echo ended >ended`
	for ignored, want := range map[string]int{"trap '' HUP;": 0, "": 128 + int(syscall.SIGTERM)} {
		s := beginBy(t, script, "sh", "-c", ignored+`exec "$@"`, "sh")
		s.cmd.Process.Signal(syscall.SIGHUP)
		for _, p := range testenv.Descendants(s.cmd.Process.Pid) {
			if ignored != "" && p.PPID == s.cmd.Process.Pid { // the helper, of which the same is asked
				_ = syscall.Kill(p.PID, syscall.SIGHUP)
			}
		}
		code := s.code(t)
		if _, err := os.Stat(filepath.Join(s.cmd.Dir, "ended")); code != want || (err == nil) != (want == 0) {
			t.Errorf("%q: exit code %d, want %d; ended: %v; stderr: %s", ignored, code, want, err, s.stderr)
		}
	}
}

func TestInterruptClimbsTheLadder(t *testing.T) {
	s := begin(t, `trap 'echo caught >caught; exit 9' TERM; READY; while :; do sleep 0.05; done`)
	s.cmd.Process.Signal(syscall.SIGINT)
	if code := s.code(t); code != 9 {
		t.Errorf("exit code %d, want the command's own 9; stderr: %s", code, s.stderr)
	}
	if _, err := os.Stat(filepath.Join(s.cmd.Dir, "caught")); err != nil {
		t.Errorf("the command's TERM handler did not run: %v", err)
	}
}

func TestSecondInterruptKillsTheHelper(t *testing.T) {
	s := begin(t, `trap 'echo caught >caught' TERM; READY; while :; do sleep 0.05; done`)
	s.cmd.Process.Signal(syscall.SIGINT)
	testenv.NewMarker(s.cmd.Dir, "caught").Wait(t) // the first one has arrived
	s.cmd.Process.Signal(syscall.SIGINT)
	if code := s.code(t); code != exitFailed {
		t.Errorf("exit code %d, want %d; stderr: %s", code, exitFailed, s.stderr)
	}
}

// Output that nobody reads does not keep a second interrupt from ending the run.
func TestSecondInterruptPassesUnreadOutput(t *testing.T) {
	needJail(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var stderr bytes.Buffer
	cmd := exec.Command(testenv.Binary(t), "run", "--", "yes")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = testenv.TempDir(t, testenv.Me()), append(os.Environ(), "HOME=/nonexistent"), w, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	defer func() { _ = cmd.Process.Kill() }()
	held, since := 0, time.Now()
	testenv.Eventually(t, "a full pipe", func() bool { // one that fills slowly is not full yet
		n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		if n != held {
			held, since = n, time.Now()
		}
		return err == nil && n >= 1<<15 && time.Since(since) > time.Second
	})
	pidNS := jailOf(t, cmd.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	_ = cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-ended:
		t.Fatal("it ended before its output was read, or it was asked twice")
	case <-time.After(3 * time.Second): // the ladder is through
	}
	_ = cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-ended:
	case <-time.After(testenv.Patience):
		t.Fatal("it still runs")
	}
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	testenv.Eventually(t, "an empty jail", func() bool { return len(testenv.InPidNS(pidNS)) == 0 })
}

// SIGKILL to `sandboxd run` itself: the helper sees its input close, and the jail
// goes with it.
func TestKilledRunLeavesNothing(t *testing.T) {
	s := begin(t, `READY; while :; do sleep 0.05; done`)
	s.cmd.Process.Kill()
	s.code(t)
}

// A helper that was killed leaves its placeholders: the next run does not take them
// for files of the workspace, and removes them.
func TestRunAfterAKilledHelper(t *testing.T) {
	s := begin(t, `trap 'echo caught >caught' TERM; READY; while :; do sleep 0.05; done`)
	file := filepath.Join(s.cmd.Dir, ".mcp.json")
	if _, err := os.Lstat(file); err != nil {
		t.Fatalf("there is no placeholder to begin with: %v", err)
	}
	s.cmd.Process.Signal(syscall.SIGQUIT)
	s.code(t)
	if _, err := os.Lstat(file); err != nil {
		t.Fatalf("the placeholder did not stay: %v", err)
	}
	again := exec.Command(s.cmd.Path, "run", "--", "true")
	again.Dir, again.Env = s.cmd.Dir, s.cmd.Env
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Lstat(file); err == nil {
		t.Error("the placeholder is still there")
	}
}

// Two runs share a workspace and its placeholders.
func TestTwoRunsInOneWorkspace(t *testing.T) {
	s := begin(t, `READY; while [ ! -e go ]; do sleep 0.01; done`)
	second := exec.Command(s.cmd.Path, "run", "--", "sh", "-c", "! mkdir .mcp.json/x && echo done >go")
	second.Dir, second.Env = s.cmd.Dir, s.cmd.Env
	if out, err := second.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
		s.cmd.Process.Kill()
	}
	if code := s.code(t); code != 0 {
		t.Errorf("the first one: exit code %d: %s", code, s.stderr)
	}
	if _, err := os.Lstat(filepath.Join(s.cmd.Dir, ".mcp.json")); err == nil {
		t.Error("a placeholder is left")
	}
}
