//go:build linux

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// hangingFS mounts a file system in dir whose root is an empty directory and that never
// answers when a name in it is looked up: whoever asks sleeps beyond every signal.
func hangingFS(t *testing.T, dir string) *hanging {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "mounting needs privilege")
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		testenv.Skip(t, "fuse", err.Error())
	}
	opts := fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd)
	if err := unix.Mount("hang", dir, "fuse", 0, opts); err != nil {
		testenv.Skip(t, "fuse", err.Error())
	}
	h := &hanging{t: t, dir: dir, fd: fd, asked: make(chan struct{}, 1000), served: make(chan struct{})}
	go h.serve()
	t.Cleanup(h.end)
	return h
}

type hanging struct {
	t      *testing.T
	dir    string
	fd     int
	asked  chan struct{} // one for each look-up that now hangs
	served chan struct{}
	over   sync.Once
	fades  atomic.Bool // its root is never answered for again
}

// end fails every request that hangs.
func (h *hanging) end() {
	h.over.Do(func() {
		_ = unix.Unmount(h.dir, unix.MNT_FORCE)
		_ = unix.Unmount(h.dir, unix.MNT_DETACH)
		<-h.served
		unix.Close(h.fd)
		_ = os.Remove(h.dir)
	})
}

// hangs waits until one more request hangs.
func (h *hanging) hangs() {
	h.t.Helper()
	select {
	case <-h.asked:
	case <-time.After(testenv.Patience):
		h.t.Fatal("nobody looks a name up")
	}
}

// serve answers the few requests without which nothing could be asked (fuse(4)).
func (h *hanging) serve() {
	defer close(h.served)
	buf := make([]byte, 1<<20)
	for {
		n, err := unix.Read(h.fd, buf)
		if err == unix.EINTR || err == unix.ENOENT {
			continue
		}
		if err != nil {
			return // unmounted
		}
		const initialise, getattr, lookup = 26, 3, 1
		opcode, unique := binary.NativeEndian.Uint32(buf[4:]), buf[8:16]
		var body []byte
		errno := int32(-int32(unix.ENOSYS))
		switch opcode {
		case lookup:
			h.asked <- struct{}{}
			continue
		case getattr:
			if h.fades.Load() {
				h.asked <- struct{}{}
				continue
			}
			body, errno = make([]byte, 104), 0
			binary.NativeEndian.PutUint64(body[16:], 1) // ino
			binary.NativeEndian.PutUint32(body[76:], unix.S_IFDIR|0o755)
			binary.NativeEndian.PutUint32(body[80:], 2) // nlink
		case initialise:
			body, errno = make([]byte, 64), 0
			copy(body, buf[40:min(n, 56)])                  // its version and options
			binary.NativeEndian.PutUint32(body[12:], 0)     // none of them
			binary.NativeEndian.PutUint32(body[20:], 1<<16) // max_write
		}
		out := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		out = binary.NativeEndian.AppendUint32(out, uint32(errno))
		out = append(append(out, unique...), body...)
		_, _ = unix.Write(h.fd, out)
	}
}

// stuckDir is a directory of the workspace with such a file system.
func (m mode) stuckDir() *hanging {
	m.t.Helper()
	dir := filepath.Join(m.dir, "stuck")
	if err := os.Mkdir(dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
	return hangingFS(m.t, dir)
}

// twoModes is eachMode where every run takes long: each user and each mode once.
func twoModes(t *testing.T, f func(t *testing.T, m mode)) {
	t.Helper()
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		name := "bwrap"
		if u.UID == 0 {
			name = "degraded"
		}
		t.Run(name, func(t *testing.T) { f(t, mode{name, t, u, testenv.TempDir(t, u)}) })
	})
}

// A command that cannot die is reported within the bounds; the helper goes on, and its
// own end says that something is left.
func TestCommandThatCannotDie(t *testing.T) {
	twoModes(t, func(t *testing.T, m mode) {
		fs := m.stuckDir()
		tag := uniqueSleep()
		c := m.connect(m.policy())
		c.start(2, m.dir, "sh", "-c", "sleep "+tag+" & echo ready; exec ls stuck/"+tag)
		c.waitOut(2, "ready")
		fs.hangs()
		asked := time.Now()
		c.send(2, protocol.Cancel{})
		r := c.collect(2)
		if r.exit == nil || r.exit.Code != 137 || !r.exit.Cancelled || !strings.Contains(strings.Join(r.exit.Enforcement, "\n"), "did not die after SIGKILL") {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		if took := time.Since(asked); took < 7*time.Second || took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		c.sh(3, m.dir, "true")
		c.send(9, protocol.Shutdown{})
		if code := c.wait(); code != 1 || !strings.Contains(c.stderr.String(), "could not be ended") {
			t.Errorf("exit %d: %s", code, c.stderr)
		}
		fs.end()
		testenv.Eventually(t, "the end of what was left", func() bool { return len(tagged(tag)) == 0 })
	})
}

// A file system that hangs under the policy holds up no stop: the execution ends before
// it began, and the next one runs.
func TestPolicyOnAHangingFileSystem(t *testing.T) {
	twoModes(t, func(t *testing.T, m mode) {
		fs := m.stuckDir()
		c := m.connect(m.policy())
		stuck := m.policy()
		stuck.ReadableRoots = []string{filepath.Join(fs.dir, "x")}
		ask := func(id, wall uint64) {
			p := stuck
			p.Limits.WallSeconds = wall
			c.send(id, protocol.ExecStart{Argv: []string{"true"}, Cwd: m.dir, Token: []byte("t"), Env: map[string]string{}, Policy: p.Append(nil)})
		}
		never := func(id uint64, timedOut bool) {
			r := c.collect(id)
			if r.exit == nil || r.exit.Code != 143 || !r.exit.Cancelled || r.exit.TimedOut != timedOut || r.exit.Degraded != m.degraded() || !has(r.exit.Enforcement, "skip:stage2") {
				t.Errorf("got %+v %+v", r.exit, r.fail)
			}
		}
		if m.degraded() { // each costs the bound on the release of the one before
			ask(4, 1)
			never(4, true)
		}
		ask(2, 0)
		fs.hangs()
		c.send(3, protocol.Heartbeat{})
		if f := c.next(); f.Kind != protocol.KindHeartbeat {
			t.Errorf("got %+v", f)
		}
		c.send(2, protocol.Cancel{})
		never(2, false)
		c.sh(5, m.dir, "true") // after the bound on the release of the one before
		fs.end()
		c.sh(6, m.dir, "true")
		c.down()
	})
}

// A run ends too, though its helper has a thread that no signal ends.
func TestRunOnAHangingFileSystem(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		fs := m.stuckDir()
		p := m.policy()
		p.ReadableRoots = []string{filepath.Join(fs.dir, "x")}
		file := filepath.Join(m.u.Home, "policy")
		write(t, file, string(p.Append(nil)))
		var out bytes.Buffer
		cmd := testenv.As(t, exec.Command(testenv.Binary(t), "run", "--policy", file, "--wall", "1", "--", "true"), u)
		cmd.Dir, cmd.Stderr = m.dir, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		fs.hangs()
		select {
		case <-ended:
		case <-time.After(2 * testenv.Patience):
			_ = cmd.Process.Kill()
			t.Fatal("it still runs")
		}
		if code := cmd.ProcessState.ExitCode(); code != 124 || !strings.Contains(out.String(), "does not die") {
			t.Errorf("exit %d: %s", code, &out)
		}
		fs.end()
	})
}

// One that begins to hang while a jail is built: whether it changed is then
// not known, and the jail that failed is not built anew.
func TestRootThatHangsWhileItIsBuilt(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		fs := m.stuckDir()
		p := m.policy()
		p.ReadableRoots = []string{fs.dir}
		building, fail := filepath.Join(m.u.Home, "building"), filepath.Join(m.u.Home, "fail")
		fake := m.fake(": >" + building + "; while [ ! -e " + fail + " ]; do sleep 0.01; done; echo no luck >&2; exit 1")
		c := m.connect(p, "--bwrap", fake, "--standby=off")
		c.start(2, m.dir, "true")
		testenv.Eventually(t, "the jail", func() bool { _, err := os.Stat(building); return err == nil })
		fs.fades.Store(true)
		write(t, fail, "")
		fs.hangs()
		c.send(2, protocol.Cancel{})
		if r := c.collect(2); r.fail == nil && (r.exit == nil || !r.exit.Cancelled) {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		fs.end()
		c.down()
	})
}

// Neither does one to which a command has led the look at its repositories: the look is
// given up, and the report says so.
func TestGuardOnAHangingFileSystem(t *testing.T) {
	twoModes(t, func(t *testing.T, m mode) {
		fs := m.stuckDir()
		guarding := m.policy()
		guarding.Protected = []string{filepath.Join(m.dir, ".mcp.json")}
		c := m.connect(guarding, "--standby=off")
		c.start(3, m.dir, "sh", "-c", "echo gitdir: "+filepath.Join(fs.dir, "x")+" >.git")
		fs.hangs()
		r := c.collect(3)
		if r.exit == nil || r.exit.Code != 0 || !strings.Contains(strings.Join(r.exit.Enforcement, "\n"), "skip:guard: what the command did to the repositories is not known") {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		c.send(9, protocol.Shutdown{})
		testenv.Eventually(t, "the helper's end", func() bool { return testenv.Processes()[c.cmd.Process.Pid].State == "Z" })
		fs.end()
		if code := c.wait(); code != 0 {
			t.Errorf("exit %d: %s", code, c.stderr)
		}
	})
}

// Neither does one under the jail that is built ahead.
func TestStandbyOnAHangingFileSystem(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		fs := m.stuckDir()
		p := m.policy()
		p.ReadableRoots = []string{filepath.Join(fs.dir, "x")}
		c := m.connect(p, "--standby=on")
		fs.hangs()
		fine := m.policy()
		c.send(2, protocol.ExecStart{Argv: []string{"/bin/true"}, Cwd: m.dir, Token: []byte("t"), Env: map[string]string{}, Policy: fine.Append(nil)})
		if r := c.collect(2); r.exit == nil || r.exit.Code != 0 {
			t.Errorf("got %+v %+v", r.exit, r.fail)
		}
		c.send(9, protocol.Shutdown{})
		testenv.Eventually(t, "the helper's end", func() bool { return testenv.Processes()[c.cmd.Process.Pid].State == "Z" })
		fs.end() // else the kernel keeps a thread of the helper, and its descriptors
		if code := c.wait(); code != 0 {
			t.Errorf("exit %d: %s", code, c.stderr)
		}
	})
}
