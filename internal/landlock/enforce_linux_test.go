package landlock

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
	"sandboxd/internal/testenv"
)

// kernelABI skips, or fails where this kind of host promises Landlock.
func kernelABI(t *testing.T) int {
	t.Helper()
	abi, err := ABI()
	if err != nil {
		testenv.Skip(t, "landlock", err.Error())
	}
	return min(abi, MaxABI)
}

// fixture is a tree with a granted, a readable and an ungranted part.
func fixture(t *testing.T, u testenv.User) string {
	t.Helper()
	root, err := os.MkdirTemp("", "landlock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	for _, dir := range []string{"ro", "rw", "rw/a", "rw/b", "rw/gone", "out"} {
		must(t, os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	for _, file := range []string{"ro/f", "rw/f", "rw/a/f", "rw/old", "out/f", "ro/old", "out/old"} {
		must(t, os.WriteFile(filepath.Join(root, file), []byte("x"), 0o644))
	}
	must(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, u.UID, u.GID)
		}
		return err
	}))
	return root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// runtimeRules let the test binary, which may be dynamic, run again.
func runtimeRules() []spec.Rule {
	list := []spec.Rule{{Path: selfPath, Access: spec.AccessRead}}
	for _, path := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc"} {
		list = append(list, spec.Rule{Path: path, Access: spec.AccessRead, Optional: true})
	}
	return list
}

// tryOps runs the operations in a child of u; s nil means unrestricted.
func tryOps(t *testing.T, u testenv.User, s *spec.Landlock, abi int, ops []string) map[string]syscall.Errno {
	t.Helper()
	cmd := exec.Command(selfPath, ops...)
	cmd.Env = []string{roleVar + "=free"}
	if s != nil {
		text, err := json.Marshal(s)
		must(t, err)
		cmd.Env = []string{roleVar + "=enforce", specVar + "=" + string(text), abiVar + "=" + strconv.Itoa(abi)}
	}
	cmd.Dir = "/"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := testenv.As(t, cmd, u).Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, stderr.Bytes())
	}
	results := map[string]syscall.Errno{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if i := strings.LastIndex(lines.Text(), " "); i > 0 {
			n, err := strconv.Atoi(lines.Text()[i+1:])
			must(t, err)
			results[lines.Text()[:i]] = syscall.Errno(n)
		}
	}
	if !bytes.HasSuffix(out, []byte("done\n")) || len(results) == 0 {
		t.Fatalf("the child did not reach its end: %s%s", out, stderr.Bytes())
	}
	return results
}

const eacces = syscall.EACCES

// step is an operation below a fixture ("R"), its answer when restricted, and the
// ABI that can restrict it; below that ABI it must succeed. The unrestricted run
// must always give free.
type step struct {
	op         string
	restricted syscall.Errno
	since      int
	free       syscall.Errno
}

var fileSteps = []step{
	{"read:R/ro/f", 0, 1, 0},
	{"list:R/ro", 0, 1, 0},
	{"write:R/ro/f", eacces, 1, 0},
	{"truncate:R/ro/f", eacces, 3, 0},
	{"create:R/ro/n", eacces, 1, 0},
	{"mkdir:R/ro/d", eacces, 1, 0},
	{"remove:R/ro/old", eacces, 1, 0},
	{"exec:/usr/bin/true", 0, 1, 0},
	{"read:R/rw/f", 0, 1, 0},
	{"write:R/rw/f", 0, 1, 0},
	{"truncate:R/rw/f", 0, 1, 0},
	{"create:R/rw/n", 0, 1, 0},
	{"mkdir:R/rw/d", 0, 1, 0},
	{"symlink:R/rw/s", 0, 1, 0},
	{"fifo:R/rw/p", 0, 1, 0},
	{"remove:R/rw/old", 0, 1, 0},
	{"rmdir:R/rw/gone", 0, 1, 0},
	{"rename:R/rw/n:R/rw/m", 0, 1, 0},
	{"rename:R/ro/f:R/rw/b/stolen", eacces, 1, 0},
}

// outSteps are of what no rule names.
var outSteps = []step{
	{"read:R/out/f", eacces, 1, 0},
	{"list:R/out", eacces, 1, 0},
	{"write:R/out/f", eacces, 1, 0},
	{"create:R/out/n", eacces, 1, 0},
	{"remove:R/out/old", eacces, 1, 0},
}

// fill puts a fixture's path into the operations.
func fill(root string, steps []step) (ops []string) {
	for _, s := range steps {
		ops = append(ops, strings.ReplaceAll(s.op, "R/", root+"/"))
	}
	return ops
}

// checkSteps tries the steps once unrestricted, then under rules made for each of
// the ABIs, each time in a fixture of its own.
func checkSteps(t *testing.T, u testenv.User, rules func(root string) spec.Landlock, abis []int, steps []step) {
	t.Helper()
	ops := fill(fixture(t, u), steps)
	free := tryOps(t, u, nil, 0, ops)
	for i, step := range steps {
		if got := free[ops[i]]; got != step.free {
			t.Errorf("control: %s gives %v, want %v: its denial proves nothing", step.op, got, step.free)
		}
	}
	for _, abi := range abis {
		root := fixture(t, u)
		s, ops := rules(root), fill(root, steps)
		held := tryOps(t, u, &s, abi, ops)
		for i, step := range steps {
			step.check(t, abi, held[ops[i]])
		}
	}
}

func (s step) check(t *testing.T, abi int, got syscall.Errno) {
	t.Helper()
	want := s.free
	if abi >= s.since {
		want = s.restricted
	}
	if got != want {
		t.Errorf("ABI %d: %s gives %v, want %v", abi, s.op, got, want)
	}
}

// abis are those up to this kernel's that brought rights, and its own. Building for
// an older one than the kernel's is what an older kernel would do.
func abis(t *testing.T) []int {
	own := kernelABI(t)
	var list []int
	for abi := 1; abi <= own; abi++ {
		if abi == own || handledBy(abi) != handledBy(abi-1) {
			list = append(list, abi)
		}
	}
	return list
}

func ownABI(t *testing.T) []int { return []int{kernelABI(t)} }

// Every ABI up to this kernel's, with the narrow rules of degraded mode.
func TestFilesWithoutJail(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		checkSteps(t, u, func(root string) spec.Landlock {
			return spec.Landlock{Enabled: true, Rules: append(runtimeRules(),
				spec.Rule{Path: root + "/ro", Access: spec.AccessRead},
				spec.Rule{Path: root + "/rw", Access: spec.AccessWrite})}
		}, abis(t), append(append([]step{}, fileSteps...), outSteps...))
	})
}

// In a jail the view may be read as a whole, and is still not writable.
func TestFilesInJail(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		steps := append(append([]step{}, fileSteps...),
			step{"read:R/out/f", 0, 1, 0}, step{"write:R/out/f", eacces, 1, 0}, step{"create:R/out/n", eacces, 1, 0},
			step{"write:/dev/null", 0, 1, 0}, step{"comm", eacces, 1, 0},
			step{"ioctl:/dev/null", syscall.ENOTTY, 1, syscall.ENOTTY},
			step{"ioctl:/dev/zero", eacces, 5, syscall.ENOTTY}, // no rule
			step{"pty", 0, 1, 0})
		checkSteps(t, u, func(root string) spec.Landlock {
			return spec.Landlock{Enabled: true, Rules: []spec.Rule{
				{Path: "/", Access: spec.AccessRead},
				{Path: root + "/rw", Access: spec.AccessWrite},
				{Path: "/dev/null", Access: spec.AccessDevice},
				{Path: "/dev/ptmx", Access: spec.AccessDevice, Optional: true},
				{Path: "/dev/pts", Access: spec.AccessDevice}}}
		}, ownABI(t), steps)
	})
}

// One layer, so that a rename across directories works inside what may be written.
func TestRenameAcrossDirectories(t *testing.T) {
	for _, abi := range abis(t) {
		want := syscall.Errno(0)
		if abi == 1 {
			want = syscall.EXDEV // the right came with ABI 2
		}
		checkSteps(t, testenv.Me(), func(root string) spec.Landlock {
			return spec.Landlock{Enabled: true, Rules: append(runtimeRules(), spec.Rule{Path: root + "/rw", Access: spec.AccessWrite})}
		}, []int{abi}, []step{
			{"rename:R/rw/a/f:R/rw/b/g", want, 1, 0},
			{"link:R/rw/f:R/rw/b/h", want, 1, 0},
			{"rename:R/rw/f:R/rw/f2", 0, 1, 0},
		})
	}
}

func wholeView(string) spec.Landlock {
	return spec.Landlock{Enabled: true, Rules: []spec.Rule{{Path: "/", Access: spec.AccessRead}}}
}

func TestNetworkRights(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	denied := []step{{"tcp-connect:" + port, eacces, 4, 0}, {"tcp-bind", eacces, 4, 0},
		{"udp-connect", eacces, 10, 0}, {"udp-bind", eacces, 10, 0}}
	checkSteps(t, testenv.Me(), func(root string) spec.Landlock {
		s := wholeView(root)
		s.DenyNet = true
		return s
	}, abis(t), denied)
	open := append([]step{}, denied...)
	for i := range open {
		open[i].restricted = 0
	}
	checkSteps(t, testenv.Me(), wholeView, ownABI(t), open)
}

func TestScopes(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		name := fmt.Sprintf("landlock-test-%d-%d", os.Getpid(), u.UID)
		listener, err := net.Listen("unix", "@"+name)
		must(t, err)
		defer listener.Close()
		checkSteps(t, u, func(root string) spec.Landlock {
			s := wholeView(root)
			s.Scope = true
			return s
		}, abis(t), []step{
			{"abstract:" + name, syscall.EPERM, 6, 0},
			{"kill:" + startPeer(t, u), syscall.EPERM, 6, 0},
		})
	})
}

func startPeer(t *testing.T, u testenv.User) string {
	t.Helper()
	cmd := testenv.As(t, exec.Command("/bin/sleep", "600"), u)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return strconv.Itoa(cmd.Process.Pid)
}

// What keeps a command off bubblewrap's init: any domain does, at every ABI.
func TestProcessesOutsideTheDomain(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		peer := startPeer(t, u)
		checkSteps(t, u, wholeView, abis(t), []step{
			{"getfd:" + peer, syscall.EPERM, 1, 0},
			{"mem:" + peer, eacces, 1, 0},
			{"ptrace:" + peer, syscall.EPERM, 1, 0},
		})
	})
}

func TestPathSockets(t *testing.T) {
	abi := kernelABI(t)
	if abi < 9 {
		testenv.Skip(t, "landlock-unix", "path sockets need ABI 9")
	}
	u := testenv.Me()
	base, err := os.MkdirTemp("", "landlock-sock-")
	must(t, err)
	defer os.RemoveAll(base)
	for _, dir := range []string{"connect", "write", "read"} {
		must(t, os.Mkdir(filepath.Join(base, dir), 0o755))
		listener, err := net.Listen("unix", filepath.Join(base, dir, "s"))
		must(t, err)
		defer listener.Close()
	}
	checkSteps(t, u, func(string) spec.Landlock {
		return spec.Landlock{Enabled: true, Rules: []spec.Rule{
			{Path: "/", Access: spec.AccessRead},
			{Path: base + "/connect/s", Access: spec.AccessConnect},
			{Path: base + "/write", Access: spec.AccessWrite}}}
	}, []int{abi}, []step{
		{"connect:" + base + "/connect/s", 0, 9, 0},
		{"connect:" + base + "/write/s", 0, 9, 0},
		{"connect:" + base + "/read/s", eacces, 9, 0},
	})
}

// The command itself may write its maps; nothing else below /proc, and no mounts.
func TestNestedUserns(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, nested := range []bool{true, false} {
			want := eacces
			if nested {
				want = 0
			}
			checkSteps(t, u, func(string) spec.Landlock {
				return spec.Landlock{Enabled: true, NestedUserns: nested, Rules: []spec.Rule{{Path: "/", Access: spec.AccessRead}}}
			}, ownABI(t), []step{{"uidmap", want, 1, 0}, {"comm", eacces, 1, 0}})
		}
	})
}

// A root caller without a jail has CAP_MKNOD: a node of a disk would be all of it.
func TestNoDeviceNodes(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "making device nodes needs privilege")
	}
	checkSteps(t, testenv.Me(), func(root string) spec.Landlock {
		return spec.Landlock{Enabled: true, Rules: []spec.Rule{{Path: "/", Access: spec.AccessRead}, {Path: root + "/rw", Access: spec.AccessWrite}}}
	}, abis(t), []step{{"device:R/rw/null", eacces, 1, 0}, {"create:R/rw/n", 0, 1, 0}})
}

func TestMountsAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "mounting needs privilege")
	}
	dir := t.TempDir()
	defer unix.Unmount(dir, unix.MNT_DETACH) // of the control
	checkSteps(t, testenv.Me(), func(string) spec.Landlock {
		return spec.Landlock{Enabled: true, Rules: []spec.Rule{{Path: "/", Access: spec.AccessWrite}}}
	}, ownABI(t), []step{{"mount:" + dir, syscall.EPERM, 1, 0}})
}

// The reason of a kernel without Landlock is named.
func TestUnavailable(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.ENOSYS:     "built without Landlock (ENOSYS)",
		syscall.EOPNOTSUPP: "at boot (EOPNOTSUPP)",
		syscall.EPERM:      "operation not permitted",
	} {
		cmd := exec.Command(selfPath)
		cmd.Env = []string{roleVar + "=abi", abiVar + "=" + strconv.Itoa(int(errno))}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "landlock: ") || !strings.Contains(string(out), want) {
			t.Errorf("%v: %q, %v", errno, out, err)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	kernelABI(t)
	testenv.NoNewFDs(t)
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	must(t, os.Symlink("/etc", link))
	for _, tt := range []struct {
		rule spec.Rule
		want string
	}{
		{spec.Rule{Path: dir + "/none", Access: spec.AccessRead}, "no such file"},
		{spec.Rule{Path: link, Access: spec.AccessRead}, "too many levels"},
		{spec.Rule{Path: link + "/passwd", Access: spec.AccessRead}, "too many levels"},
		{spec.Rule{Path: dir, Access: 77}, "no such access"},
	} {
		_, _, err := Build(spec.Landlock{Enabled: true, Rules: []spec.Rule{tt.rule}})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.rule.Path) {
			t.Errorf("%+v: %v", tt.rule, err)
		}
	}
	rs, skips, err := Build(spec.Landlock{Enabled: true, Rules: []spec.Rule{
		{Path: dir, Access: spec.AccessRead}, {Path: dir + "/none", Access: spec.AccessRead, Optional: true},
		{Path: link, Access: spec.AccessRead, Optional: true}}})
	if err != nil || len(skips) != 0 || rs.ABI != kernelABI(t) {
		t.Fatalf("%+v, %v, %v", rs, skips, err)
	}
	rs.Close()
	if err := rs.Enforce(); err == nil {
		t.Error("a closed ruleset was enforced")
	}
}
