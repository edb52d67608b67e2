//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

func TestMain(m *testing.M) { os.Exit(testenv.RunMain(m)) }

// conn is a hand-made broker that can also say what no broker should.
type conn struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *protocol.Reader
	stderr *syncBuffer
	hello  protocol.Hello
	user   testenv.User
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// basePolicy is a workspace policy: dir writable, network off, a fresh scratch.
func basePolicy(dir string) protocol.Policy {
	return protocol.Policy{
		WritableRoots: []string{dir},
		Network:       protocol.Network{Mode: protocol.NetOff},
		Scratch:       protocol.ScratchTmpfs,
		EnvAllow:      []string{"PATH", "HOME", "LANG", "TMPDIR", "SANDBOXD_SCRATCH_DIR"},
	}
}

// standby lets every test run both ways: as an ordinary user with a jail that is built
// ahead, as root without. SANDBOXD_TEST_STANDBY=on or off is for all of them.
func standby(u testenv.User) []string {
	way := os.Getenv("SANDBOXD_TEST_STANDBY")
	if way == "" && u.UID == 0 {
		way = "off"
	}
	if way == "" {
		return nil
	}
	return []string{"--standby=" + way}
}

// startConn starts the helper that cmd describes, with policy as its descriptor 3.
func startConn(t *testing.T, cmd *exec.Cmd, u testenv.User, policy *os.File) *conn {
	t.Helper()
	defer policy.Close()
	cmd.ExtraFiles = []*os.File{policy}
	c := &conn{t: t, cmd: cmd, stderr: &syncBuffer{}, user: u}
	cmd.Stderr = c.stderr
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = protocol.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// spawn starts a helper without greeting it.
func spawn(t *testing.T, u testenv.User, policy []byte, args ...string) *conn {
	t.Helper()
	cmd := exec.Command(testenv.Binary(t), append(standby(u), args...)...)
	testenv.As(t, cmd, u)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer w.Close()
		_, _ = w.Write(policy)
	}()
	c := startConn(t, cmd, u, r)
	t.Cleanup(func() {
		c.in.Close()
		done := time.AfterFunc(testenv.Patience, func() { cmd.Process.Kill() })
		_ = cmd.Wait()
		done.Stop()
		if t.Failed() && c.stderr.String() != "" {
			t.Logf("helper's stderr: %s", c.stderr)
		}
	})
	return c
}

// connect starts a helper with a policy and greets it.
func connect(t *testing.T, u testenv.User, p protocol.Policy, args ...string) *conn {
	t.Helper()
	c := spawn(t, u, p.Append(nil), args...)
	c.greet()
	return c
}

func (c *conn) greet() {
	c.t.Helper()
	f := c.next()
	h, ok := f.Body.(protocol.Hello)
	if !ok {
		c.t.Fatalf("got %s first, expected hello; stderr: %s", f.Kind, c.stderr)
	}
	c.hello = h
	c.send(1, protocol.Hello{Proto: protocol.ExecVersion, Peer: "e2e"})
}

func (c *conn) send(id uint64, b protocol.Body) {
	c.t.Helper()
	frame, err := protocol.AppendFrame(nil, id, b)
	if err != nil {
		c.t.Fatal(err)
	}
	c.raw(frame)
}

func (c *conn) raw(b []byte) {
	c.t.Helper()
	if _, err := c.in.Write(b); err != nil {
		c.t.Fatalf("cannot write to the helper: %v; stderr: %s", err, c.stderr)
	}
}

func (c *conn) next() protocol.Frame {
	c.t.Helper()
	f, err := c.out.Next()
	if err != nil {
		c.t.Fatalf("cannot read a frame: %v; stderr: %s", err, c.stderr)
	}
	return f
}

// wait reaps the helper and gives its exit status.
func (c *conn) wait() int {
	c.t.Helper()
	for {
		if _, err := c.out.Next(); err != nil {
			break
		}
	}
	err := c.cmd.Wait()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		c.t.Fatal(err)
	}
	return c.cmd.ProcessState.ExitCode()
}

// result is what came for one execution.
type result struct {
	stdout, stderr string
	exit           *protocol.ExecExit
	fail           *protocol.ErrorBody
}

// start asks for sh -c script in dir.
func (c *conn) start(id uint64, dir string, argv ...string) {
	c.t.Helper()
	c.send(id, protocol.ExecStart{
		Argv: argv, Cwd: dir, Token: []byte("secret-token"),
		Env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/tmp"},
	})
}

// collect reads to the terminal frame of id.
func (c *conn) collect(id uint64) result {
	c.t.Helper()
	var r result
	for {
		f := c.next()
		if f.ID != id {
			c.t.Fatalf("got a %s frame under id %d, expected %d: %+v", f.Kind, f.ID, id, f.Body)
		}
		switch b := f.Body.(type) {
		case protocol.ExecOut:
			if b.Stream == protocol.Stdout {
				r.stdout += string(b.Data)
			} else {
				r.stderr += string(b.Data)
			}
		case protocol.ExecExit:
			r.exit = &b
			return r
		case protocol.ErrorBody:
			r.fail = &b
			return r
		default:
			c.t.Fatalf("got an unexpected %s frame", f.Kind)
		}
	}
}

// sh runs a script that must succeed and gives its output.
func (c *conn) sh(id uint64, dir, script string) result {
	c.t.Helper()
	r := c.try(id, dir, script)
	if r.exit.Code != 0 {
		c.t.Fatalf("exit %d\nstdout: %s\nstderr: %s", r.exit.Code, r.stdout, r.stderr)
	}
	return r
}

// try runs a script that must run, whatever it exits with.
func (c *conn) try(id uint64, dir, script string) result {
	c.t.Helper()
	c.start(id, dir, "sh", "-c", script)
	r := c.collect(id)
	if r.fail != nil {
		c.t.Fatalf("%s: %s", r.fail.Code, r.fail.Msg)
	}
	return r
}

func has(list []string, prefix string) bool {
	for _, e := range list {
		if e == prefix || strings.HasPrefix(e, prefix+":") || strings.HasPrefix(e, prefix+"=") {
			return true
		}
	}
	return false
}
