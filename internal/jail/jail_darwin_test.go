package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/stage2"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// TestMain makes this binary its own stage 2.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "--exec" {
		os.Exit(stage2.Main())
	}
	os.Exit(m.Run())
}

// kept is a sink that keeps everything.
type kept struct {
	mu   sync.Mutex
	text strings.Builder
}

func (k *kept) Output(_ protocol.Stream, b []byte, _ uint64, _ bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text.Write(b)
	return nil
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.String()
}

// place is a host and a workspace outside of the user's own directories.
func place(t *testing.T) (*Host, string) {
	t.Helper()
	h, err := NewHost(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if h.profiles != host.Works {
		testenv.Skip(t, "seatbelt", h.noJail)
	}
	if slices.ContainsFunc(h.userDirs, func(dir string) bool { return host.Beneath(h.Facts.HelperPath, dir) }) {
		testenv.Skip(t, "seatbelt", "the test's binary lies in the user's temporary directory; set TMPDIR=/private/tmp")
	}
	work, err := os.MkdirTemp("/private/tmp", "sandboxd-jail-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(work) })
	return h, work
}

func request(work, script string) Request {
	return Request{Cwd: work, Argv: []string{"/bin/sh", "-c", script}, Env: map[string]string{"PATH": "/usr/bin:/bin"},
		Policy: protocol.Policy{WritableRoots: []string{work}, Scratch: protocol.ScratchTmpfs, EnvAllow: []string{"PATH"},
			Network: protocol.Network{Mode: protocol.NetOff}}}
}

func wait(t *testing.T, r *Run) *protocol.ExecExit {
	t.Helper()
	select {
	case <-r.Released():
	case <-time.After(time.Minute):
		t.Fatal("the execution does not end")
	}
	x, err := r.Result()
	if err != nil {
		t.Fatal(err)
	}
	if r.Leftover() != nil {
		t.Error(r.Leftover())
	}
	return x
}

func TestExecution(t *testing.T) {
	h, work := place(t)
	outside := filepath.Join("/private/tmp", "sandboxd-outside-"+filepath.Base(work))
	out := &kept{}
	script := fmt.Sprintf(`echo hi >f && cat f; echo "$SANDBOXD_SCRATCH_DIR"; touch "$SANDBOXD_SCRATCH_DIR/x" && echo scratch; touch %q 2>/dev/null || echo denied; exit 7`, outside)
	x := wait(t, h.Start(request(work, script), out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if x.Code != 7 || len(lines) != 4 || lines[0] != "hi" || lines[2] != "scratch" || lines[3] != "denied" {
		t.Fatalf("exit %d, %q", x.Code, lines)
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("it wrote outside of its roots")
	}
	if _, err := os.Lstat(lines[1]); err == nil || !host.Beneath(lines[1], scratchBase) {
		t.Errorf("the scratch %q is elsewhere, or was left behind", lines[1])
	}
	for _, tag := range []string{"seatbelt", "seatbelt-fs", "seatbelt-net", "roots", "darwin-process-lifecycle"} {
		if !slices.ContainsFunc(x.Enforcement, func(e string) bool {
			id, skip := protocol.Layer(e)
			return id == tag && skip == (tag == "darwin-process-lifecycle")
		}) {
			t.Errorf("the report lacks %s: %q", tag, x.Enforcement)
		}
	}
	if x.Degraded {
		t.Error("degraded")
	}
}

// A background process in a group of its own ends with the execution.
func TestNothingIsLeft(t *testing.T) {
	h, work := place(t)
	out := &kept{}
	wait(t, h.Start(request(work, `set -m; sleep 300 </dev/null >/dev/null 2>&1 & echo $!; sleep 0.2`), out))
	var pid int
	if _, err := fmt.Sscan(out.String(), &pid); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(pid, 0); err != unix.ESRCH {
		t.Errorf("the sleeper %d lives on: %v", pid, err)
	}
}

func TestStop(t *testing.T) {
	h, work := place(t)
	out := &kept{}
	r := h.Start(request(work, `trap 'echo term; exit 3' TERM; echo ready; while :; do sleep 0.05; done`), out)
	for end := time.Now().Add(time.Minute); !strings.Contains(out.String(), "ready"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the command does not start")
		}
	}
	r.Stop(Cancelled)
	if x := wait(t, r); x.Code != 3 || !x.Cancelled || !strings.Contains(out.String(), "term") {
		t.Errorf("exit %d, cancelled %t, %q", x.Code, x.Cancelled, out.String())
	}
}

// A stop at any moment of the launch ends it by TERM, or before anything ran.
func TestStopWhileItStarts(t *testing.T) {
	h, work := place(t)
	for after := time.Duration(0); after < 60*time.Millisecond; after += 2 * time.Millisecond {
		r := h.Start(request(work, `trap 'exit 3' TERM; while :; do sleep 0.05; done`), &kept{})
		time.AfterFunc(after, func() { r.Stop(Cancelled) })
		if x := wait(t, r); x.Code != 3 && x.Code != 128+int(unix.SIGTERM) || !x.Cancelled {
			t.Errorf("stopped after %v: exit %d after %d ms, cancelled %t", after, x.Code, x.WallMS, x.Cancelled)
		}
	}
}

// What a killed helper left goes with the next start; what is in use stays.
func TestSweep(t *testing.T) {
	used, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	left, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := left.beside(profileSuffix)
	if err != nil {
		t.Fatal(err)
	}
	profile.Close()
	if err := os.MkdirAll(left.dir+"/closed/inner", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(left.dir+"/closed/inner", 0), os.Chmod(left.dir+"/closed", 0)); err != nil {
		t.Fatal(err)
	}
	inUse, err := used.beside(profileSuffix)
	if err != nil {
		t.Fatal(err)
	}
	inUse.Close()
	planted := filepath.Join(scratchBase, scratchPrefix+"*"+witnessSuffix) // no pattern
	if err := os.WriteFile(planted, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(planted)
	left.witness.Close() // as a kill would
	sweepScratch()
	if _, err := os.Lstat(inUse.Name()); err != nil {
		t.Errorf("the profile in use was removed: %v", err)
	}
	if _, err := os.Lstat(profile.Name()); err == nil {
		t.Error("the profile without a helper is still there")
	}
	if _, err := os.Lstat(left.dir); err == nil {
		t.Error("the scratch without a helper is still there")
	}
	if _, err := os.Lstat(used.dir); err != nil {
		t.Errorf("the scratch in use was removed: %v", err)
	}
	if err := used.remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(used.witness.Name()); err == nil {
		t.Error("the witness is still there")
	}
}

// The kernel tells a process that executes a program from one that dies.
func TestImage(t *testing.T) {
	for script, want := range map[string]bool{"echo; read x; exec /usr/bin/true": true, "echo; read x; exit 1": false} {
		in, w, err := os.Pipe()
		r, out, err2 := os.Pipe()
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		child, err := os.StartProcess("/bin/sh", []string{"sh", "-c", script}, &os.ProcAttr{Files: []*os.File{in, out}})
		if err != nil {
			t.Fatal(err)
		}
		in.Close()
		out.Close()
		if _, err := r.Read(make([]byte, 1)); err != nil { // the shell itself runs
			t.Fatal(err)
		}
		r.Close()
		p := &process{os: child, pid: child.Pid, zombie: make(chan struct{})}
		if err := p.watchImage(); err != nil {
			t.Fatal(err)
		}
		go p.await()
		if p.newImage() {
			t.Errorf("%s: a new image before there can be one", script)
		}
		w.Close()
		if !Within(time.Minute, p.zombie) {
			t.Fatalf("%s: it does not end", script)
		}
		for range 2 { // it is asked again and again
			if p.newImage() != want {
				t.Errorf("%s: a new image: %t, want %t", script, !want, want)
			}
		}
		p.reap()
		if p.forgetImage(); p.newImage() {
			t.Errorf("%s: a new image of nothing", script)
		}
	}
}
