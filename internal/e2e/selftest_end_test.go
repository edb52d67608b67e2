//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/selftest"
	"sandboxd/internal/testenv"
)

// startedSelfTest is a self-test that is under way.
type startedSelfTest struct {
	*exec.Cmd
	out, stderr bytes.Buffer
}

// startSelfTest starts one whose probes take their time.
func startSelfTest(t *testing.T, u testenv.User, dir string, args ...string) *startedSelfTest {
	t.Helper()
	s := &startedSelfTest{}
	s.Cmd = exec.Command(testenv.Binary(t), append([]string{"self-test", "--dir", dir}, args...)...)
	s.Stdout, s.Stderr = &s.out, &s.stderr
	s.Dir = "/"
	testenv.As(t, s.Cmd, u)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Process.Kill(); s.Wait() })
	return s
}

// running says whether a process runs that has all the words in its command line.
func running(words ...string) bool {
	for pid := range testenv.Processes() {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		all := len(b) > 0
		for _, word := range words {
			all = all && bytes.Contains(b, []byte(word))
		}
		if all {
			return true
		}
	}
	return false
}

// inMemory names the baits in shared memory that belong to u.
func inMemory(t *testing.T, u testenv.User) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	files, err := filepath.Glob("/dev/shm/sandboxd-selftest-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && int(info.Sys().(*syscall.Stat_t).Uid) == u.UID {
			found[file] = true
		}
	}
	return found
}

// slowProbes leave something of every kind behind where nobody takes care: a control
// that ignores TERM, one whose grandchild stays, and a file in shared memory.
const slowProbes = "term-ignored,setsid,dev"

// A SIGKILL at the worst moment leaves no process, and what it leaves on the disk and in
// memory the next run removes; not what a living one uses.
func TestSelfTestKilled(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		needBwrap(t, u)
		dir := fixtureDir(t, u)
		for _, control := range [][]string{{"--probe-ignore", dir}, {"--probe-stay", dir, "/setsid-"}} {
			before := inMemory(t, u)
			s := startSelfTest(t, u, dir, "--only", slowProbes)
			testenv.Eventually(t, "the control runs", func() bool {
				for file := range inMemory(t, u) {
					if !before[file] {
						return running(control...)
					}
				}
				return false
			})
			s.Process.Kill()
			s.Wait()
			testenv.Eventually(t, "its processes end", func() bool { return !running(dir) })
			if left, _ := os.ReadDir(dir); len(left) == 0 {
				t.Error("nothing was left that the next run could remove")
			}
		}
		living := startSelfTest(t, u, dir, "--only", slowProbes)
		testenv.Eventually(t, "another one runs", func() bool { return running("--probe-ignore", dir) })
		if r := selfTest(t, u, testenv.Binary(t), "self-test", "--dir", dir, "--only", "environment"); r.code != 0 {
			t.Errorf("the next run: exit code %d, %s", r.code, r.text)
		}
		if left, _ := os.ReadDir(dir); len(left) > 1 {
			t.Errorf("%d fixtures are there while one run lives", len(left))
		}
		if err := living.Wait(); err != nil {
			t.Errorf("the living one: %v\n%s%s", err, &living.out, &living.stderr)
		}
		nothingLeft(t, dir)
		for file := range inMemory(t, u) {
			if f, err := os.Open(file); err == nil && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				t.Errorf("%s is left behind", file) // nobody's, not that of another test's run
			}
		}
	})
}

// Each signal that asks for an end is one, with clean-up: what was interrupted did not
// fail, and the run is no pass.
func TestSelfTestInterrupted(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		needBwrap(t, u)
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
			dir := fixtureDir(t, u)
			s := startSelfTest(t, u, dir, "--only", slowProbes)
			testenv.Eventually(t, "the control runs", func() bool { return running("--probe-ignore", dir) })
			s.Process.Signal(sig)
			s.Wait()
			text := s.out.String()
			if code := s.ProcessState.ExitCode(); code != 3 || !strings.Contains(text, "\nNOT RUN  term-ignored ") ||
				!strings.Contains(text, "\nRESULT: NOT RUN (not a pass)") || !strings.Contains(text, "\ninterrupted\n") ||
				strings.Contains(text, string(selftest.Failed)) || s.stderr.Len() > 0 {
				t.Errorf("%v: exit code %d\n%s%s", sig, code, text, &s.stderr)
			}
			nothingLeft(t, dir)
			if running(dir) {
				t.Errorf("%v: a process is left behind", sig)
			}
		}
	})
}

// A result that nobody can read is no pass, and says so on standard error.
func TestSelfTestUnwritable(t *testing.T) {
	u := testenv.Ordinary(t)
	needBwrap(t, u)
	dir := fixtureDir(t, u)
	for _, c := range []struct {
		redirect, says string
		code           int
	}{
		{">/dev/null", "", 0},
		{">/dev/full", "cannot write the result: write /dev/stdout: no space left on device", 3},
		{"--json >/dev/full", "cannot write the result: write /dev/stdout: no space left on device", 1},
		{">&-", "cannot write the result: standard output is closed", 3},
		{"--json >&-", "cannot write the result: standard output is closed", 3},
		{"| head -1 >/dev/null; exit ${PIPESTATUS[0]}", "cannot write the result: write /dev/stdout: broken pipe", 3},
		{">&- 2>&-", "", 0}, // who discards both wants the exit code
	} {
		cmd := exec.Command(testenv.Tool(t, "bash"), "-c", `"$0" self-test --dir "$1" --only environment,term-ignored `+c.redirect, testenv.Binary(t), dir)
		testenv.As(t, cmd, u)
		cmd.Dir = "/"
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		cmd.Run()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(stderr.String(), c.says) || c.says == "" && stderr.Len() > 0 {
			t.Errorf("%s: exit code %d, %q", c.redirect, cmd.ProcessState.ExitCode(), &stderr)
		}
		nothingLeft(t, dir)
	}
}

// The longest path of a directory that a socket's address takes is about 100 bytes; the
// self-test takes any.
func TestSelfTestLongPath(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		needBwrap(t, u)
		top := fixtureDir(t, u)
		dir := filepath.Join(top, strings.Repeat("x", 200), strings.Repeat("y", 200))
		make := exec.Command("mkdir", "-p", dir)
		testenv.As(t, make, u)
		if out, err := make.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		probes := []string{"path-socket", "fence-service-socket", "hostile-native"}
		if _, err := exec.LookPath("erlc"); err == nil {
			probes = append(probes, "hostile-erlang")
		}
		r := selfTest(t, u, testenv.Binary(t), "self-test", "--dir", dir, "--only", strings.Join(probes, ","))
		if len(r.enforced()) != len(probes) || r.code != 0 {
			t.Errorf("enforced %q, exit code %d: %s", r.enforced(), r.code, r.text)
		}
		nothingLeft(t, dir)
	})
}

// A file system without room, and one that fills up meanwhile: neither says anything
// about a layer.
func TestSelfTestLittleSpace(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		needBwrap(t, u)
		if testenv.Me().UID != 0 {
			testenv.Skip(t, "root", "mounting")
		}
		dir := fixtureDir(t, u)
		// In a mount namespace of its own, so that nobody else sees the mount.
		run := func(size, probe, meanwhile string) selfTestRun {
			return selfTest(t, testenv.Me(), testenv.Tool(t, "unshare"), "-m", "sh", "-ec", `mount -t tmpfs -o size=`+size+` selftest "$1"; chown "$2:$3" "$1"; `+meanwhile+`
exec setpriv --reuid "$2" --regid "$3" --clear-groups "$4" self-test --dir "$1" --only "$5" "$6"`,
				"sh", dir, fmt.Sprint(u.UID), fmt.Sprint(u.GID), testenv.Binary(t), probe)
		}
		if r := run("20m", "cpu", ""); r.Result != selftest.NotRun || r.code != 3 || !strings.Contains(r.Reason, "MiB") || r.OS != "linux" || r.Arch == "" {
			t.Errorf("%s (%s) on %s/%s, exit code %d", r.Result, r.Reason, r.OS, r.Arch, r.code)
		}
		// Full while the control burns its seconds, before the jailed run has its own files.
		r := run("100m", "cpu", `(until ls -d "$1"/*/cpu-*/*/effect; do sleep 0.05; done; cat /dev/zero >"$1/full") >/dev/null 2>&1 &`)
		if r.Result != selftest.NotRun || r.code != 3 || r.Failed > 0 || r.Untried == 0 {
			t.Errorf("%s, %d failed, exit code %d: %s", r.Result, r.Failed, r.code, r.text)
		}
		if r := run("100m", "environment", ""); len(r.enforced()) != 1 || r.code != 0 {
			t.Errorf("with room: %s", r.text)
		}
	})
}
