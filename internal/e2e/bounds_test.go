//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A report fits into its frame whatever the policy names: every accepted exec_start
// gets its one terminal frame.
func TestReportIsBounded(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	p := basePolicy(dir)
	for i := range 2700 {
		path := fmt.Sprintf("/absent-%d/%s", i, strings.Repeat("\x01/", 1800))
		p.Mounts = append(p.Mounts, protocol.Mount{Path: strings.TrimSuffix(path, "/"), Access: protocol.ReadOnly})
	}
	c := connect(t, u, basePolicy(dir))
	c.send(2, protocol.ExecStart{Argv: []string{"echo", "ran"}, Cwd: dir, Token: []byte("t"), Env: map[string]string{}, Policy: p.Append(nil)})
	r := c.collect(2)
	if r.exit == nil {
		t.Fatalf("got %.200v", r.fail)
	}
	if r.stdout != "ran\n" || !strings.Contains(strings.Join(r.exit.Enforcement, "\n"), "skip:optional-mount: and ") {
		t.Errorf("got %q and %d entries", r.stdout, len(r.exit.Enforcement))
	}
}

// What a peer says never comes back as a frame that cannot be written.
func TestMessagesAreBounded(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	c := connect(t, u, basePolicy(dir))
	long := strings.Repeat("\x01", 8<<20)
	c.raw(envelope(5, long, mapOf()))
	if e, ok := c.next().Body.(protocol.ErrorBody); !ok || e.Code != protocol.CodeUnknownKind || len(e.Msg) > 16<<10 {
		t.Fatalf("got %.100v", e)
	}
	for id, change := range map[uint64]field{
		6: {"cwd", str("/" + long)}, 7: {"argv", str(long)}, 8: {long, str("x")},
	} {
		c.raw(envelope(id, "exec_start", startBody(dir, change)))
		if e, ok := c.next().Body.(protocol.ErrorBody); !ok || e.Code != protocol.CodeMalformedFrame || len(e.Msg) > 16<<10 {
			t.Errorf("%d: got %.100v", id, e)
		}
	}
	c.sh(9, dir, "true")
}

// The base policy has its bound also when its writer says nothing at all.
func TestSilentPolicyWriter(t *testing.T) {
	if testing.Short() {
		return
	}
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	cmd := exec.Command(testenv.Binary(t))
	cmd.ExtraFiles = []*os.File{r}
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "did not come within") {
		t.Errorf("got %v: %s", err, out)
	}
}

func TestLostStdoutIsAFailure(t *testing.T) {
	u := testenv.Me()
	p := basePolicy(testenv.TempDir(t, u)).Append(nil)
	for range 5 {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		must(t, err)
		r, w, err := os.Pipe()
		must(t, err)
		cmd := exec.Command(testenv.Binary(t))
		cmd.Stdout, cmd.ExtraFiles = full, []*os.File{r}
		must(t, cmd.Start())
		r.Close()
		_, _ = w.Write(p)
		w.Close()
		_ = cmd.Wait()
		full.Close()
		if code := cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("exit %d, expected 1", code)
		}
	}
}

// A descriptor 1 that was closed at the start takes no frame: nothing is served, and
// nothing runs of which nobody hears.
func TestClosedStdout(t *testing.T) {
	u := testenv.Me()
	dir := testenv.TempDir(t, u)
	policy := dir + "/policy"
	must(t, os.WriteFile(policy, basePolicy(dir).Append(nil), 0o644))
	for redirect, want := range map[string]int{">&-": 1, ">/dev/null": 0} {
		cmd := exec.Command("sh", "-c", `exec "$0" 3<"$1" `+redirect, testenv.Binary(t), policy)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != want || strings.Contains(stderr.String(), "descriptor 1 is closed") != (want == 1) {
			t.Errorf("%s: exit %d, %s", redirect, code, &stderr)
		}
	}
}

// A descriptor that the broker left inheritable reaches nothing below the helper.
func TestInheritableDescriptors(t *testing.T) {
	u := testenv.Me()
	dir := testenv.TempDir(t, u)
	log := dir + "/log"
	fake := dir + "/bwrap"
	writeMode(t, fake, "#!/bin/sh\ncase \"$1\" in --help|--version) ;; *) ls -l /proc/$$/fd >>"+log+";; esac\nexec /usr/bin/bwrap \"$@\"\n", 0o755)
	secret := dir + "/secret"
	must(t, os.Mkdir(secret, 0o755))
	cmd := exec.Command("sh", "-c", `exec 7<"$1"; shift; exec "$@"`, "sh", secret, testenv.Binary(t), "run", "--workspace", dir, "--bwrap", fake, "--", "true")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(log)
	must(t, err)
	if !strings.Contains(string(b), " 0 -> ") {
		t.Fatalf("the control failed: %s", b)
	}
	if strings.Contains(string(b), "secret") {
		t.Errorf("bubblewrap got it: %s", b)
	}
}
