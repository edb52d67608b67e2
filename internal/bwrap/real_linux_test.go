package bwrap_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// callers are who these tests run as: the ordinary user needs a root test run.
var callers = func() []int {
	if me := os.Getuid(); me != 0 {
		return []int{me}
	}
	return []int{0, 12345}
}()

// gather fills a layout by lstat, for tests only: it follows every link.
func gather(paths []string) host.Layout {
	l := host.Layout{}
	for _, path := range paths {
		var visit func(at string, rest []string, hops int)
		visit = func(at string, rest []string, hops int) {
			n := lstat(at)
			l[at] = n
			if n.Kind == host.Link && hops < host.MaxHops {
				target := n.Target
				if !strings.HasPrefix(target, "/") {
					target = host.Join(host.Parent(at), target)
				}
				// Tests make no link whose ".." crosses another link.
				visit("/", append(strings.Split(filepath.Clean(target), "/")[1:], rest...), hops+1)
				return
			}
			for len(rest) > 0 && rest[0] == "" {
				rest = rest[1:]
			}
			if n.Kind == host.Dir && len(rest) > 0 {
				visit(host.Join(at, rest[0]), rest[1:], hops)
			}
		}
		visit("/", strings.Split(path, "/")[1:], 0)
	}
	return l
}

func lstat(path string) host.Node {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return host.Node{Kind: host.Missing}
	} else if err != nil {
		return host.Node{Kind: host.Denied}
	}
	n := host.Node{ID: host.ID{Dev: st.Dev, Ino: st.Ino}, Nlink: uint64(st.Nlink), Rdev: st.Rdev, Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid}
	kinds := map[uint32]host.Kind{unix.S_IFDIR: host.Dir, unix.S_IFREG: host.File, unix.S_IFLNK: host.Link, unix.S_IFSOCK: host.Socket,
		unix.S_IFIFO: host.Fifo, unix.S_IFCHR: host.CharDevice, unix.S_IFBLK: host.BlockDevice}
	n.Kind = kinds[st.Mode&unix.S_IFMT]
	if n.Kind == host.Link {
		n.Target, _ = os.Readlink(path)
	}
	return n
}

// flags reads the option names of the installed bubblewrap.
func flags(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("/usr/bin/bwrap", "--help").CombinedOutput()
	if err != nil {
		testenv.Skip(t, "bubblewrap", err.Error())
	}
	m := map[string]bool{}
	for _, line := range strings.Split(string(out), "\n") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--"); ok {
			m[strings.Fields(name)[0]] = true
		}
	}
	return m
}

// jail is one real run.
type jail struct {
	t     *testing.T
	uid   int
	dir   string // the caller's own directory, writable
	p     protocol.Policy
	facts func(*host.Facts)
	plan  plan.Plan
	flags map[string]bool
}

func newJail(t *testing.T, uid int) *jail {
	t.Helper()
	if os.Getuid() != 0 && uid != os.Getuid() {
		testenv.Skip(t, "root", "running as another user needs root")
	}
	dir, err := os.MkdirTemp("/var/tmp", "bwrap-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	j := &jail{t: t, uid: uid, dir: dir, flags: flags(t)}
	j.own(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	j.mkdir("ws")
	j.p = protocol.Policy{WritableRoots: []string{j.path("ws")}, Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	return j
}

func (j *jail) path(rel string) string { return filepath.Join(j.dir, rel) }

func (j *jail) own(path string) {
	j.t.Helper()
	if os.Getuid() != 0 {
		return // it is the caller's already
	}
	if err := os.Lchown(path, j.uid, j.uid); err != nil {
		j.t.Fatal(err)
	}
}

func (j *jail) mkdir(rel string) {
	j.t.Helper()
	at := j.dir
	for _, name := range strings.Split(rel, "/") {
		at = filepath.Join(at, name)
		if err := os.Mkdir(at, 0o755); err == nil {
			j.own(at)
		}
	}
}

func (j *jail) write(rel, text string) {
	j.t.Helper()
	j.mkdir(filepath.Dir(rel))
	if err := os.WriteFile(j.path(rel), []byte(text), 0o644); err != nil {
		j.t.Fatal(err)
	}
	j.own(j.path(rel))
}

func (j *jail) link(target, rel string) {
	j.t.Helper()
	if err := os.Symlink(target, j.path(rel)); err != nil {
		j.t.Fatal(err)
	}
	j.own(j.path(rel))
}

// run plans, renders and executes sh -c script; it returns both streams together.
func (j *jail) run(script string) (string, int) {
	j.t.Helper()
	f := host.Facts{OS: "linux", UID: j.uid, GID: j.uid, TotalRAM: 64 << 20, LandlockABI: 7}
	if j.facts != nil {
		j.facts(&f)
	}
	f.Layout = gather(plan.Paths(j.p, f))
	var err error
	if j.plan, err = plan.Build(j.p, f); err != nil {
		j.t.Fatal(err)
	}
	j.place()
	c, err := bwrap.Render(j.plan, bwrap.Options{FirstFD: 4, Flags: j.flags, NetFull: j.p.Network.Mode == protocol.NetFull, Exec: []string{"/bin/sh", "-c", script}})
	if err != nil {
		j.t.Fatal(err)
	}
	return j.start(c)
}

// place makes the placeholders, as internal/roots does.
func (j *jail) place() {
	j.t.Helper()
	for _, op := range j.plan.Ops {
		if !op.Placeholder {
			continue
		}
		var err error
		if op.Class == plan.MaskFile {
			err = os.WriteFile(op.Path, nil, 0o600)
		} else {
			err = os.Mkdir(op.Path, 0o700)
		}
		if err != nil {
			j.t.Fatal(err)
		}
		j.own(op.Path)
	}
}

func (j *jail) start(c bwrap.Command) (string, int) {
	j.t.Helper()
	files := []*os.File{data(j.t, strings.Join(c.Args, "\x00")+"\x00")}
	for _, in := range c.Inherit {
		if in.Kind == bwrap.Data {
			files = append(files, data(j.t, in.Content))
			continue
		}
		fd, err := unix.Open(in.Path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			j.t.Fatal(err)
		}
		files = append(files, os.NewFile(uintptr(fd), in.Path))
	}
	cmd := exec.Command("/usr/bin/bwrap", append([]string{"--args", "3", "--"}, c.Exec...)...)
	cmd.Env, cmd.ExtraFiles, cmd.Dir = []string{}, files, "/"
	if os.Getuid() == 0 && j.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(j.uid), Gid: uint32(j.uid)}}
	}
	out, err := cmd.CombinedOutput()
	for _, f := range files {
		f.Close()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		j.t.Fatal(err)
	}
	if strings.Contains(string(out), "bwrap: ") {
		j.t.Fatalf("bubblewrap failed: %s\nargs: %q", out, c.Args)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func data(t *testing.T, text string) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("data", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "data")
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
	return f
}

// expect runs a script and compares its output, whole lines.
func (j *jail) expect(script, want string) {
	j.t.Helper()
	out, _ := j.run(script)
	if out != want {
		j.t.Errorf("script:\n%s\ngot:\n%swant:\n%s%s", script, out, want, j.listing())
	}
}

func (j *jail) listing() string {
	var b strings.Builder
	for _, op := range j.plan.Ops {
		b.WriteString(op.Class.String() + " " + strconv.Quote(op.Path) + "\n")
	}
	return b.String()
}

// each runs a test as every caller.
func each(t *testing.T, f func(j *jail)) {
	t.Helper()
	for _, uid := range callers {
		t.Run("uid"+strconv.Itoa(uid), func(t *testing.T) { f(newJail(t, uid)) })
	}
}
