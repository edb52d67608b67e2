package stage2

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
	"sandboxd/internal/testenv"
)

// The test binary plays stage 2, and what stage 2 runs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "--exec":
			os.Exit(Main())
		case "--payload":
			payload()
			os.Exit(0)
		case "--answer":
			answer(os.Args[2:])
		case "--allowed":
			os.Exit(map[bool]int{false: 10, true: 11}[allowed()])
		}
	}
	os.Exit(testenv.RunMain(m))
}

// seen is what a command finds itself to be.
type seen struct {
	Argv    []string
	Env     []string
	Cwd     string
	Pid     int
	Session int
	Group   int
	Limits  map[string][2]uint64
}

func payload() {
	s := seen{Argv: os.Args, Env: os.Environ(), Pid: os.Getpid(), Group: unix.Getpgrp(), Limits: map[string][2]uint64{}}
	s.Cwd, _ = os.Getwd()
	s.Session, _ = unix.Getsid(0)
	for name, resource := range map[string]int{"fsize": unix.RLIMIT_FSIZE, "cpu": unix.RLIMIT_CPU, "core": unix.RLIMIT_CORE} {
		var l unix.Rlimit
		if unix.Getrlimit(resource, &l) == nil {
			s.Limits[name] = [2]uint64{l.Cur, l.Max}
		}
	}
	json.NewEncoder(os.Stdout).Encode(s)
}

// world is one way in which stage 2 is run.
type world struct {
	user    testenv.User
	jailed  bool
	image   string // the test binary, where every user can execute it
	dir     string // writable by the user, and in the jail
	groups  int    // supplementary ones
	limits  string // shell text before stage 2 starts: ulimit, trap
	extra   []string
	without []string // words of the command line that are left out
	gone    bool     // the helper's end of fd 4 is closed before the start

	talk func(t *testing.T, fd int) []spec.Message // the helper's part on fd 4; nil: receive
}

// eachWorld runs f for root and an ordinary user, directly and under bubblewrap.
func eachWorld(t *testing.T, f func(t *testing.T, w world)) {
	t.Helper()
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		t.Run("direct", func(t *testing.T) { f(t, newWorld(t, u, false)) })
		t.Run("jailed", func(t *testing.T) { f(t, newWorld(t, u, true)) })
	})
}

const bwrapPath = "/usr/bin/bwrap"

func newWorld(t *testing.T, u testenv.User, jailed bool) world {
	t.Helper()
	if jailed {
		if _, err := os.Stat(bwrapPath); err != nil {
			testenv.Skip(t, "bwrap", err.Error())
		}
	}
	w := world{user: u, jailed: jailed, dir: testenv.TempDir(t, u)}
	w.image = filepath.Join(testenv.TempDir(t, testenv.Me()), "stage2")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Link(self, w.image) != nil {
		copyFile(t, self, w.image)
	}
	return w
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// file makes a file of the user's in w.dir.
func (w world) file(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	if w.user.UID != os.Getuid() {
		if err := os.Chown(path, w.user.UID, w.user.GID); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// spec asks for everything a jail has, for argv.
func (w world) spec(argv ...string) spec.Spec {
	s := spec.Spec{
		Command: spec.Command{Argv: argv, Env: []string{"A=b", "Z="}, Path: []string{"/nonexistent", "/usr/bin", "/bin"}, Cwd: "/"},
		Jailed:  w.jailed,
		Landlock: spec.Landlock{Enabled: true, Scope: true, DenyNet: true, Rules: []spec.Rule{
			{Path: "/", Access: spec.AccessRead},
			{Path: w.dir, Access: spec.AccessWrite},
			{Path: "/dev/null", Access: spec.AccessDevice},
		}},
		Seccomp: spec.Seccomp{DenyNet: true},
	}
	if w.jailed {
		s.Namespaces = ownNamespaces("mnt", "pid", "user", "ipc", "uts", "cgroup", "net")
	}
	return s
}

func ownNamespaces(names ...string) []spec.Namespace {
	var out []spec.Namespace
	for _, name := range names {
		var st unix.Stat_t
		if unix.Stat("/proc/self/ns/"+name, &st) == nil {
			out = append(out, spec.Namespace{Name: name, Ino: st.Ino})
		}
	}
	return out
}

// ran is everything an execution showed.
type ran struct {
	messages []spec.Message // until end of file
	out, err string         // the command's streams
	scaffold string         // what stage 2 or bubblewrap printed before
	state    *os.ProcessState
}

func (w world) argv() []string {
	inner := []string{"/proc/self/fd/" + strconv.Itoa(spec.ImageFD), "--exec"}
	if w.limits != "" {
		inner = []string{"/bin/sh", "-c", w.limits + `; exec "$@"`, "sh", inner[0], inner[1]}
	}
	if !w.jailed {
		return inner
	}
	args := []string{bwrapPath, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
		"--unshare-cgroup", "--unshare-net", "--die-with-parent", "--cap-drop", "ALL", "--disable-userns",
		"--ro-bind", "/", "/", "--bind", w.dir, w.dir}
	if len(w.without) > 0 {
		args = slices.DeleteFunc(args, func(word string) bool { return slices.Contains(w.without, word) })
	}
	args = append(args, w.extra...)
	args = append(args, "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc", "--")
	return append(args, inner...)
}

// run starts stage 2 as the helper does and follows it to its end.
func (w world) run(t *testing.T, specification []byte) ran {
	t.Helper()
	testenv.NoNewFDs(t)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "report")
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	image, err := os.Open(w.image)
	if err != nil {
		t.Fatal(err)
	}
	outR, outW := pipe(t)
	errR, errW := pipe(t)
	argv := w.argv()
	cmd := exec.Command(argv[0], argv[1:]...)
	var scaffold bytes.Buffer
	cmd.Stdout, cmd.Stderr = &scaffold, &scaffold
	cmd.Env = []string{}
	cmd.ExtraFiles = []*os.File{memfd(t, specification), theirs, in, outW, errW, image}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if w.user.UID != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(w.user.UID), Gid: uint32(w.user.GID)}
	}
	if w.groups > 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(w.user.UID), Gid: uint32(w.user.GID), Groups: manyGroups(w.groups)}
	}
	if w.gone {
		unix.Close(pair[0])
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	var r ran
	out, errs := collect(outR), collect(errR)
	if !w.gone {
		talk := receive
		if w.talk != nil {
			talk = w.talk
		}
		r.messages = talk(t, pair[0])
		unix.Close(pair[0])
	}
	cmd.Wait()
	r.out, r.err, r.scaffold, r.state = <-out, <-errs, scaffold.String(), cmd.ProcessState
	return r
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func collect(f *os.File) <-chan string {
	c := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(f)
		f.Close()
		c <- string(b)
	}()
	return c
}

func memfd(t *testing.T, b []byte) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "spec")
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	return f
}

// receive reads messages until end of file.
func receive(t *testing.T, fd int) (messages []spec.Message) {
	t.Helper()
	buf := make([]byte, spec.MaxMessage)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatalf("fd 4: %v", err)
		}
		if n == 0 {
			return messages
		}
		m, err := spec.DecodeMessage(buf[:n])
		if err != nil {
			t.Fatalf("fd 4: %v", err)
		}
		if m.Begun != nil && len(messages) == 0 { // TestBegun looks at it
			continue
		}
		messages = append(messages, m)
		if m.Report != nil {
			_ = unix.Sendto(fd, []byte{spec.Go}, unix.MSG_NOSIGNAL, nil)
		}
	}
}

// report gives the report of an execution that went well so far.
func (r ran) report(t *testing.T) spec.Report {
	t.Helper()
	if len(r.messages) != 1 || r.messages[0].Report == nil {
		t.Fatalf("expected one report, got %s (scaffold %q)", show(r.messages), r.scaffold)
	}
	return *r.messages[0].Report
}

// failure gives the one failure of an execution without a command.
func (r ran) failure(t *testing.T) spec.Failure {
	t.Helper()
	if len(r.messages) == 0 {
		t.Fatalf("fd 4 said nothing (scaffold %q)", r.scaffold)
	}
	last := r.messages[len(r.messages)-1]
	if last.Failure == nil {
		t.Fatalf("expected a failure, got %s, out %q", show(r.messages), r.out)
	}
	if r.out != "" {
		t.Errorf("a failed execution printed %q", r.out)
	}
	return *last.Failure
}

func show(messages []spec.Message) string {
	b, _ := json.Marshal(messages)
	return string(b)
}
