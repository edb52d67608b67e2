//go:build linux

package attack

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// helper is a sandboxd under test and the broker's ends of its descriptors.
type helper struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	reader *protocol.Reader
	hello  protocol.Hello
	mu     sync.Mutex
	stderr strings.Builder
}

func (h *helper) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stderr.Write(b)
}

func (h *helper) said() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stderr.String()
}

// start starts a helper; env is what its own environment has beside the test's.
func start(t *testing.T, u testenv.User, p protocol.Policy, env []string, args ...string) *helper {
	t.Helper()
	return startBinary(t, testenv.Binary(t), u, p, env, args...)
}

func startBinary(t *testing.T, path string, u testenv.User, p protocol.Policy, env []string, args ...string) *helper {
	t.Helper()
	h := &helper{t: t, cmd: exec.Command(path, args...)}
	h.cmd.Env = append(os.Environ(), env...)
	testenv.As(t, h.cmd, u)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { defer w.Close(); _, _ = w.Write(p.Append(nil)) }()
	h.cmd.ExtraFiles = []*os.File{r}
	h.cmd.Stderr = h
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if h.out, err = h.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	h.reader = protocol.NewReader(h.out)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	t.Cleanup(func() {
		h.in.Close()
		if h.cmd.ProcessState == nil {
			end := time.AfterFunc(testenv.Patience, func() { _ = h.cmd.Process.Kill() })
			_, _ = io.Copy(io.Discard, h.out)
			_ = h.cmd.Wait()
			end.Stop()
		}
		if t.Failed() && h.said() != "" {
			t.Logf("helper's stderr: %s", h.said())
		}
	})
	f := h.next()
	var hello bool
	if h.hello, hello = f.Body.(protocol.Hello); !hello {
		t.Fatalf("got %s first, expected hello", f.Kind)
	}
	return h
}

func (h *helper) greet() {
	h.t.Helper()
	h.send(1, protocol.Hello{Proto: protocol.ExecVersion, Peer: "attack"})
}

func (h *helper) next() protocol.Frame {
	h.t.Helper()
	f, err := h.reader.Next()
	if err != nil {
		h.t.Fatalf("cannot read a frame: %v; stderr: %s", err, h.said())
	}
	return f
}

func frame(id uint64, b protocol.Body) []byte {
	raw, err := protocol.AppendFrame(nil, id, b)
	if err != nil {
		panic(err)
	}
	return raw
}

func (h *helper) send(id uint64, b protocol.Body) {
	h.t.Helper()
	if _, err := h.in.Write(frame(id, b)); err != nil {
		h.t.Fatalf("cannot write to the helper: %v; stderr: %s", err, h.said())
	}
}

// outcome is what came under one id to its terminal frame.
type outcome struct {
	stdout, stderr string
	exit           *protocol.ExecExit
	fail           *protocol.ErrorBody
}

func (h *helper) collect(id uint64) outcome {
	h.t.Helper()
	var o outcome
	for {
		f := h.next()
		// The end of the input may come when nothing runs any more.
		if e, is := f.Body.(protocol.ErrorBody); is && e.Code == protocol.CodeNoExec {
			continue
		}
		if f.ID != id {
			h.t.Fatalf("got %s under id %d, expected %d", f.Kind, f.ID, id)
		}
		switch b := f.Body.(type) {
		case protocol.ExecOut:
			if b.Stream == protocol.Stdout {
				o.stdout += string(b.Data)
			} else {
				o.stderr += string(b.Data)
			}
		case protocol.ExecExit:
			o.exit = &b
			return o
		case protocol.ErrorBody:
			o.fail = &b
			return o
		}
	}
}

func (h *helper) run(id uint64, s protocol.ExecStart) outcome {
	h.t.Helper()
	h.send(id, s)
	h.send(id, protocol.ExecStdin{EOF: true})
	return h.collect(id)
}

// end ends the helper in order and gives its exit status.
func (h *helper) end() int {
	h.t.Helper()
	_ = h.in.Close()
	for {
		if _, err := h.reader.Next(); err != nil {
			break
		}
	}
	var exit *exec.ExitError
	if err := h.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	return h.cmd.ProcessState.ExitCode()
}

// scene is the layout of one run on disk, with its victim.
type scene struct {
	*world
	t testing.TB
	u testenv.User
}

// newScene makes the files of every attack, owned by u, and starts a victim.
func newScene(t *testing.T, u testenv.User, names []string) *scene {
	t.Helper()
	nonce := strings.ReplaceAll(filepath.Base(testenv.TempDir(t, u)), "sandboxd-test-", "n")
	s := &scene{t: t, u: u, world: &world{Base: testenv.TempDir(t, u), Nonce: nonce, Secret: "secret-" + nonce + strings.Repeat("-and-more", 20), Namespaces: namespaces()}}
	ok(t, os.MkdirAll(filepath.Join(s.Base, "ws", "handles"), 0o755), os.Mkdir(filepath.Join(s.Base, "ro"), 0o755),
		os.Mkdir(filepath.Join(s.Base, "out"), 0o755), os.Mkdir(filepath.Join(s.Base, "victim"), 0o755), os.Mkdir(filepath.Join(s.Base, "bin"), 0o755))
	ok(t, os.WriteFile(filepath.Join(s.Base, "victim", "victim-secret"), []byte(s.Secret), 0o600))
	for _, name := range names {
		if byName(name).files {
			ok(t, s.called(name).build())
		}
	}
	s.handle("env", s.called("protected: open by a handle from outside").env())
	s.handle("out", s.called("outside: read by a handle").out("secret"))
	self, err := os.ReadFile("/proc/self/exe")
	ok(t, err, os.WriteFile(s.program(), self, 0o755))
	s.own()
	if u.UID == 0 {
		private := "/etc/sandboxd-attack-private-" + nonce
		ok(t, os.WriteFile(private, []byte(s.Secret), 0o640))
		t.Cleanup(func() { os.Remove(private) })
	}
	s.call()
	return s
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) program() string { return filepath.Join(s.Base, "bin", "attack") }

// own gives everything to the user.
func (s *scene) own() {
	s.t.Helper()
	ok(s.t, filepath.WalkDir(s.Base, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && s.u.UID != os.Getuid() {
			err = os.Lchown(path, s.u.UID, s.u.GID)
		}
		return err
	}))
}

func (s *scene) handle(name, path string) {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		return // this user's list has no such attack, or the file system has no handles
	}
	ok(s.t, os.WriteFile(filepath.Join(s.Base, "ws", "handles", name), append([]byte{byte(h.Type())}, h.Bytes()...), 0o644))
}

// call starts the victim.
func (s *scene) call() {
	s.t.Helper()
	cmd := exec.Command(s.program(), "@victim", filepath.Join(s.Base, "victim"), s.Secret, s.Nonce, "victim-"+s.Nonce, "token-"+s.Nonce)
	testenv.As(s.t, cmd, s.u)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	ok(s.t, err)
	out, err := cmd.StdoutPipe()
	ok(s.t, err, cmd.Start())
	s.t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	ok(s.t, json.NewDecoder(out).Decode(&s.Victim))
}

// policy is a workspace policy for the attacks of a list.
func (s *scene) policy(names []string) protocol.Policy {
	p := protocol.Policy{
		WritableRoots: []string{filepath.Join(s.Base, "ws")},
		ReadableRoots: []string{filepath.Join(s.Base, "ro"), filepath.Join(s.Base, "bin")},
		Network:       protocol.Network{Mode: protocol.NetOff},
		Scratch:       protocol.ScratchTmpfs,
		EnvAllow:      []string{"PATH"},
		Limits:        protocol.Limits{FsizeBytes: fileCeiling, CPUSeconds: 300, MemBytes: tmpfsCeiling},
	}
	for _, name := range names {
		if byName(name).files {
			p.Protected = append(p.Protected, s.called(name).protected()...)
		}
	}
	return p
}

func (s *scene) start(argv ...string) protocol.ExecStart {
	return protocol.ExecStart{Argv: argv, Cwd: filepath.Join(s.Base, "ws"), Token: []byte("token-" + s.Nonce), Env: map[string]string{"PATH": "/usr/bin:/bin"}}
}
