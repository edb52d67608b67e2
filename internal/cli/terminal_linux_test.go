package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/testenv"
)

// stopped says whether run itself and everything in the jail is: bubblewrap's init and
// the shell at least. A child that had just ended stays a zombie meanwhile, and a parent
// waits in the kernel for a child that was stopped between vfork(2) and execve(2).
func (s session) stopped() bool {
	all := testenv.Processes()
	states := all[s.cmd.Process.Pid].State
	for _, p := range testenv.InPidNS(s.pidNS) {
		states += all[p.PID].State
	}
	return strings.HasPrefix(states, "T") && strings.Count(states, "T") >= 3 && strings.Trim(states, "TZD") == ""
}

// Ctrl-Z: the command stops too, not only what the shell sees of it; SIGCONT continues
// both.
func TestStopStopsTheCommand(t *testing.T) {
	s := begin(t, `READY; while [ ! -e go ]; do sleep 0.01; done; exit 7`)
	s.cmd.Process.Signal(syscall.SIGTSTP)
	testenv.Eventually(t, "all stopped", s.stopped)
	if err := os.WriteFile(filepath.Join(s.cmd.Dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.cmd.Process.Signal(syscall.SIGCONT)
	if code := s.code(t); code != 7 {
		t.Errorf("exit code %d, want 7; stderr: %s", code, s.stderr)
	}
}

// What is stopped can be ended: a shell sends TERM and CONT to a stopped job.
func TestStoppedCommandCanBeEnded(t *testing.T) {
	s := begin(t, `trap 'exit 9' TERM; READY; while :; do sleep 0.01; done`)
	s.cmd.Process.Signal(syscall.SIGTSTP)
	testenv.Eventually(t, "all stopped", s.stopped)
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.cmd.Process.Signal(syscall.SIGCONT)
	if code := s.code(t); code != 9 {
		t.Errorf("exit code %d, want 9; stderr: %s", code, s.stderr)
	}
}

// A reader who goes away: the command's handler runs, and nothing of the jail is
// there any more when run ends.
func TestReaderThatGoesAway(t *testing.T) {
	needJail(t)
	dir := testenv.TempDir(t, testenv.Me())
	cmd := exec.Command(testenv.Binary(t), "run", "--", "sh", "-c", `trap 'echo caught >caught; exit' TERM; while :; do echo y; done`)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME=/nonexistent")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	ns := jailOf(t, cmd.Process.Pid)
	out.Close()
	cmd.Wait()
	left := testenv.InPidNS(ns)
	if code := cmd.ProcessState.ExitCode(); code != exitBrokenPipe || len(left) != 0 || stderr.String() != "" {
		t.Errorf("exit code %d, want %d; left %v; stderr %q", code, exitBrokenPipe, left, &stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "caught")); err != nil {
		t.Errorf("the command's TERM handler did not run: %v", err)
	}
}

// onTerminal runs a script of a shell with job control in a session of its own.
func onTerminal(t *testing.T, script, typed string) (output string) {
	t.Helper()
	needJail(t)
	master, slave := testenv.Terminal(t)
	dir := testenv.TempDir(t, testenv.Me())
	cmd := exec.Command("bash", "-c", "set -m\n"+script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME=/nonexistent", "S="+testenv.Binary(t))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	done := make(chan string)
	go func() {
		b, _ := io.ReadAll(master) // EIO at the end, when the last slave is closed
		done <- string(b)
	}()
	if _, err := master.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	testenv.Eventually(t, "the end of the shell", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	return <-done
}

// A job in the background does not stop for its terminal's input, and does not take
// it away from the one in front.
func TestBackgroundLeavesTheTerminalAlone(t *testing.T) {
	out := onTerminal(t, `$S run -- sh -c 'sleep 0.5; echo ran' & read -r line; wait $!; echo "code $? read $line"`, "typed\n")
	if !strings.Contains(out, "ran") || !strings.Contains(out, "code 0 read typed") {
		t.Errorf("got %q", out)
	}
}

func TestForegroundReadsTheTerminal(t *testing.T) {
	out := onTerminal(t, `$S run -- sh -c 'read -r line; echo "got $line"; tty'; echo "code $?"`, "typed\n")
	// The command has pipes, never the terminal.
	if !strings.Contains(out, "got typed") || !strings.Contains(out, "not a tty") || !strings.Contains(out, "code 1") {
		t.Errorf("got %q", out)
	}
}

// Alone, sandboxd is a server, which nobody types frames to.
func TestAloneOnATerminal(t *testing.T) {
	out := onTerminal(t, `$S; echo "code $?"`, "")
	if !strings.Contains(out, "`sandboxd help` lists the rest") || !strings.Contains(out, "code 2") {
		t.Errorf("got %q", out)
	}
}

// Nothing in a jail has the terminal that its helper was started on: who has it can type
// into it (TIOCSTI, CVE-2017-5226).
func TestJailHasNoTerminal(t *testing.T) {
	const tty = `cut -d" " -f7 /proc/%/stat`
	out := onTerminal(t, `echo "mine $(`+strings.ReplaceAll(tty, "%", "$$")+`)"; $S run -- sh -c 'echo "init $(`+strings.ReplaceAll(tty, "%", "1")+
		`) command $(`+strings.ReplaceAll(tty, "%", "$$")+`)"'`, "")
	if !strings.Contains(out, "init 0 command 0") || !strings.Contains(out, "mine ") || strings.Contains(out, "mine 0") {
		t.Errorf("the terminals are %q", out)
	}
}
