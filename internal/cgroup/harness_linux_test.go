package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/cgroups/v3/cgroup2"
	"golang.org/x/sys/unix"
	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// The test binary runs itself as the processes that live in the cgroups.
const (
	roleVar = "CGROUP_TEST_ROLE"
	// parentVar names a cgroup in which the tests may make others.
	parentVar = "SANDBOXD_TEST_CGROUP"
)

var none protocol.Limits

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVar); role {
	case "":
		os.Exit(m.Run())
	case "open":
		_, reason := Open(os.Args[1], "")
		fmt.Print(reason)
	case "wait": // says where it lives, from its first moment, and waits
		b, _ := os.ReadFile("/proc/self/cgroup")
		fmt.Printf("%sready\n", b)
		io.Copy(io.Discard, os.Stdin)
	case "touch", "reserve":
		size, _ := strconv.Atoi(os.Args[1])
		p, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		for i := 0; role == "touch" && i < size; i += 4096 {
			p[i] = 1
		}
		fmt.Println("ready")
	default:
		panic(role)
	}
	os.Exit(0)
}

// parent finds a cgroup v2 directory in which this user may make others.
func parent(t *testing.T) string {
	for _, dir := range []string{os.Getenv(parentVar), "/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var st unix.Statfs_t
		if dir != "" && unix.Statfs(dir, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC &&
			unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK, unix.AT_EACCESS) == nil {
			return dir
		}
	}
	testenv.Skip(t, "cgroup-v2", "no cgroup v2 directory that this user may make cgroups in")
	return ""
}

// emptyDir makes a cgroup for this test, and removes it with what is below.
func emptyDir(t *testing.T, parent string) string {
	t.Helper()
	path, err := os.MkdirTemp(parent, "sandboxd-test-")
	must(t, err)
	must(t, os.Chmod(path, 0o755))
	t.Cleanup(func() {
		killAll(path)
		f, err := openDir(unix.AT_FDCWD, parent, unix.O_PATH)
		must(t, err)
		defer f.Close()
		if err := removeTree(dir{f, parent}, filepath.Base(path), 0); err != nil {
			t.Errorf("the test left something: %v", err)
		}
	})
	return path
}

func killAll(path string) {
	f, err := openDir(unix.AT_FDCWD, path, unix.O_RDONLY)
	if err != nil {
		return
	}
	d := dir{f, path}
	defer f.Close()
	d.write("cgroup.kill", "1")
	waitEmpty(d, time.Now().Add(10*time.Second))
}

// bareBase is a base without controllers: membership, events and signals need none.
func bareBase(t *testing.T) *Base {
	t.Helper()
	testenv.NoNewFDs(t)
	d, reason := openBase(emptyDir(t, parent(t)))
	if reason != "" {
		t.Fatal(reason)
	}
	b := &Base{dir: d, pid: os.Getpid()}
	t.Cleanup(func() { b.Close() })
	return b
}

// fullBase is a base as Open accepts it.
func fullBase(t *testing.T) *Base {
	t.Helper()
	p := parent(t)
	testenv.NoNewFDs(t)
	path := emptyDir(t, p)
	have, err := os.ReadFile(path + "/cgroup.controllers")
	must(t, err)
	if !containsAll(strings.Fields(string(have)), controllers) {
		testenv.Skip(t, "cgroup-ceilings", "the controllers of "+p+" are "+strconv.Quote(string(have)))
	}
	b, reason := Open(path, "")
	if reason != "" {
		t.Fatal(reason)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func create(t *testing.T, b *Base, id uint64, l protocol.Limits) *Group {
	t.Helper()
	g, err := b.Create(id, l)
	must(t, err)
	return g
}

// role makes a command of this binary that is born in g.
func role(g *Group, name string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = []string{roleVar + "=" + name}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	return cmd
}

// waiter starts a process in g that says "ready" and lives until it is killed. Its
// output up to there is returned.
func waiter(t *testing.T, g *Group) (*exec.Cmd, string) {
	t.Helper()
	return startReady(t, role(g, "wait"))
}

func startReady(t *testing.T, cmd *exec.Cmd) (*exec.Cmd, string) {
	t.Helper()
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	var said bytes.Buffer
	buf := make([]byte, 4096)
	for !strings.HasSuffix(said.String(), "ready\n") {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Fatalf("the child ended before it was ready: %q, %v", &said, err)
		}
	}
	return cmd, said.String()
}

// witness is containerd's own reading of a cgroup.
func witness(t *testing.T, path string) *cgroup2.Manager {
	t.Helper()
	p := filepath.Dir(path)
	m, err := cgroup2.Load("/"+filepath.Base(path), cgroup2.WithMountpoint(p))
	must(t, err)
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}
