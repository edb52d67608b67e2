package cli

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
)

// Bytes of every value pass unchanged, both ways and on both outputs, and in order.
func TestRunIsTransparent(t *testing.T) {
	needJail(t)
	data := make([]byte, 3<<20+17)
	source := rand.NewChaCha8(sha256.Sum256([]byte(t.Name())))
	source.Read(data)
	dir := testenv.TempDir(t, testenv.Me())
	cmd := exec.Command(testenv.Binary(t), "run", "--", "sh", "-c", `tee /dev/stderr; exit 42`)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME=/nonexistent")
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), &out, &errs
	cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 42 {
		t.Errorf("exit code %d", code)
	}
	for name, got := range map[string][]byte{"stdout": out.Bytes(), "stderr": errs.Bytes()} {
		if !bytes.Equal(got, data) {
			t.Errorf("%s has %d bytes, sha256 %x; want %d, %x", name, len(got), sha256.Sum256(got), len(data), sha256.Sum256(data))
		}
	}
}

// A command that reads little of its input ends when it ends.
func TestUnreadInputHoldsNothingUp(t *testing.T) {
	needJail(t)
	dir := testenv.TempDir(t, testenv.Me())
	cmd := exec.Command("sh", "-c", `yes | "$1" run -- head -n 1; echo "code $?"`, "sh", testenv.Binary(t))
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME=/nonexistent")
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "y\ncode 0\n" {
		t.Errorf("%v: %q", err, out)
	}
}

// Nothing is lost to a process that makes a stream which it shares non-blocking, as node
// does with a pipe, after the run has begun.
func TestStreamsMadeNonBlocking(t *testing.T) {
	needJail(t)
	for _, args := range [][]string{{}, {"--json"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		in, word, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer word.Close()
		cmd := exec.Command(testenv.Binary(t), append(append([]string{"run", "--output", "0"}, args...), "--", "sh", "-c", `echo ready; read x; head -c 3000000 /dev/zero | tr '\0' x; head -c 3000000 /dev/zero | tr '\0' x >&2; exit 42`)...)
		cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = testenv.TempDir(t, testenv.Me()), append(os.Environ(), "HOME=/nonexistent"), in, w, w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun := make([]byte, 4096)
		if _, err := r.Read(begun); err != nil {
			t.Fatal(err)
		}
		for _, f := range []*os.File{in, w} { // the descriptions that the run has
			if err := unix.SetNonblock(int(f.Fd()), true); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		time.Sleep(100 * time.Millisecond)
		word.Write([]byte("\n"))
		time.Sleep(100 * time.Millisecond) // the pipe fills
		got, err := io.ReadAll(r)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); err != nil || code != 42 || bytes.Count(got, []byte("x")) < 6_000_000 {
			t.Errorf("%v: exit code %d, %d bytes: %.200q, %v", args, code, len(got), got, err)
		}
	}
}

// The signals that ask for an end reach the command's handler, whichever it is.
func TestSignalsReachTheCommand(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			s := begin(t, `trap 'exit 9' TERM; READY; while :; do sleep 0.01; done`)
			s.cmd.Process.Signal(sig)
			if code := s.code(t); code != 9 || strings.Contains(s.stderr.String(), "sandboxd") {
				t.Errorf("exit code %d, want 9; stderr: %s", code, s.stderr)
			}
		})
	}
}

// An end by a signal is 128 and its number, as a shell says it.
func TestSignalOfTheCommand(t *testing.T) {
	needJail(t)
	for _, sig := range []int{1, 6, 9, 13, 15} {
		_, errs, code := sandboxdIn(t, testenv.Me(), workspaceOf(t, testenv.Me(), "w/")+"/w", "run", "--", "sh", "-c", fmt.Sprintf("kill -%d $$", sig))
		if code != 128+sig || strings.Contains(errs, "sandboxd") {
			t.Errorf("signal %d: exit code %d, %s", sig, code, errs)
		}
	}
}
