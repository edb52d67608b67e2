package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"sandboxd/internal/testenv"
)

// Every wrong base has a reason of its own, and the reason names what was given.
func TestWrongBasesHaveReasonsOfTheirOwn(t *testing.T) {
	tmp := t.TempDir()
	lookalike := filepath.Join(tmp, "lookalike")
	must(t, os.Mkdir(lookalike, 0o755))
	for name, text := range map[string]string{
		"cgroup.controllers": "memory pids\n", "cgroup.subtree_control": "memory pids\n", "cgroup.procs": "",
	} {
		must(t, os.WriteFile(filepath.Join(lookalike, name), []byte(text), 0o644))
	}
	file := filepath.Join(lookalike, "cgroup.procs")
	for name, c := range map[string]struct{ path, want string }{
		"three text files": {lookalike, "is an ordinary directory and not a cgroup"},
		"missing":          {filepath.Join(tmp, "typo"), "does not exist"},
		"a file":           {file, "is not a directory"},
		"below a file":     {file + "/x", "is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			testenv.NoNewFDs(t)
			for _, by := range []string{"--cgroup-base", BaseEnv} {
				flag, env := c.path, lookalike+"/other"
				if by == BaseEnv {
					flag, env = "", c.path
				}
				b, reason := Open(flag, env)
				if b != nil || !strings.HasPrefix(reason, by+` "`+c.path+`" `) || !strings.Contains(reason, c.want) {
					t.Errorf("got %v, %q", b, reason)
				}
			}
		})
	}
	text, err := os.ReadFile(file)
	if err != nil || len(text) != 0 {
		t.Errorf("cgroup.procs of the look-alike was written: %q, %v", text, err)
	}
}

// Hosts have version 1, version 2 or both; statfs tells them apart.
func TestFileSystemsAreToldApart(t *testing.T) {
	for magic, want := range map[int64]string{
		unix.CGROUP2_SUPER_MAGIC: "",
		unix.CGROUP_SUPER_MAGIC:  "is a cgroup v1 directory",
		unix.TMPFS_MAGIC:         "is an ordinary directory",
		unix.EXT4_SUPER_MAGIC:    "is an ordinary directory",
	} {
		if got := judgeMagic(magic); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%#x: got %q", magic, got)
		}
	}
	var st unix.Statfs_t
	const dir = "/sys/fs/cgroup/memory"
	if unix.Statfs(dir, &st) != nil || st.Type != unix.CGROUP_SUPER_MAGIC {
		return // the rest is about a host that has version 1
	}
	if b, reason := Open(dir, ""); b != nil || !strings.Contains(reason, "is a cgroup v1 directory") {
		t.Errorf("got %v, %q", b, reason)
	}
}

func TestBaseWithoutControllers(t *testing.T) {
	top := emptyDir(t, parent(t))
	base := filepath.Join(top, "base") // top passes nothing on
	must(t, os.Mkdir(base, 0o755))
	b, reason := Open(base, "")
	if b != nil || !strings.Contains(reason, "has no memory and no pids controller") {
		t.Errorf("got %v, %q", b, reason)
	}
}

func TestBaseWithProcesses(t *testing.T) {
	b := bareBase(t)
	if reason := judgeEmpty(b.dir); reason != "" {
		t.Fatalf("an empty one: %q", reason)
	}
	g := create(t, b, 1, none)
	waiter(t, g)
	if reason := judgeEmpty(g.dir); !strings.HasPrefix(reason, "holds 1 processes") {
		t.Errorf("got %q", reason)
	}
	// What lives further below does not matter.
	if reason := judgeEmpty(b.dir); reason != "" {
		t.Errorf("a process further below: %q", reason)
	}
	must(t, g.Kill())
	must(t, g.Remove(0x7fffffff))
}

func TestThreadedBaseIsNamed(t *testing.T) {
	b := bareBase(t)
	must(t, os.Mkdir(b.Path()+"/t", 0o755))
	must(t, os.WriteFile(b.Path()+"/t/cgroup.type", []byte("threaded"), 0))
	bad, reason := Open(b.Path()+"/t", "")
	if bad != nil || !strings.Contains(reason, `is a cgroup of type "threaded"`) {
		t.Errorf("got %v, %q", bad, reason)
	}
}

// openAs asks Open as another user, from the cgroup that the test is in. self is a
// copy of the test binary that this user can reach.
func openAs(t *testing.T, u testenv.User, self, path string) string {
	t.Helper()
	cmd := exec.Command(self, path)
	cmd.Env = []string{roleVar + "=open"}
	out, err := testenv.As(t, cmd, u).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestBaseOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "asking as another user needs root")
	}
	u := testenv.Ordinary(t)
	self := filepath.Join(testenv.TempDir(t, u), "test")
	image, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(self, image, 0o755))
	b := bareBase(t)
	closed := b.Path() + "/closed"
	must(t, os.MkdirAll(closed+"/base", 0o755))
	must(t, os.Chmod(closed, 0o700))
	for _, path := range []string{closed, closed + "/base"} {
		if got := openAs(t, u, self, path); !strings.Contains(got, "cannot be entered by uid") {
			t.Errorf("%s: got %q", path, got)
		}
	}
	// The judges in the order of Open; this host may have no controllers to pass the
	// ones before.
	if got := openAs(t, u, self, b.Path()); !strings.Contains(got, "is not for uid") && !strings.Contains(got, "controller") {
		t.Errorf("a base that only root may write: got %q", got)
	}
}

// A base that the user owns takes nothing where the user may not move a process out
// of the cgroup that it is in.
func TestMigrationIsJudged(t *testing.T) {
	b := bareBase(t)
	if reason := judgeMigration(b.dir); reason != "" {
		t.Errorf("the test's own base: %q", reason)
	}
	tmp := dir{b.dir.f, "/nowhere"}
	if reason := judgeMigration(tmp); !strings.Contains(reason, "no ancestor in common") {
		t.Errorf("a directory outside every cgroup mount: %q", reason)
	}
}

// Detection is a question: nothing is made, removed or switched on.
func TestOpenWritesNothing(t *testing.T) {
	top := emptyDir(t, parent(t))
	before := snapshot(t, top)
	for range 3 {
		if b, _ := Open(top, ""); b != nil {
			b.Close()
		}
	}
	if after := snapshot(t, top); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	must(t, os.Mkdir(top+"/x", 0o755)) // the snapshot does see a change
	if snapshot(t, top) == before {
		t.Error("a new cgroup does not show")
	}
}

func snapshot(t *testing.T, top string) string {
	t.Helper()
	var s strings.Builder
	must(t, filepath.WalkDir(top, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		s.WriteString(path)
		switch e.Name() {
		case "cgroup.subtree_control", "cgroup.procs", "cgroup.type", "cgroup.freeze", "memory.max", "pids.max":
			b, err := os.ReadFile(path)
			s.WriteString(" " + string(b))
			return err
		}
		s.WriteString("\n")
		return nil
	}))
	return s.String()
}

// The helper's own cgroup is no base unless it is the true root.
func TestOwnCgroup(t *testing.T) {
	testenv.NoNewFDs(t)
	b, reason := Open("", "")
	if b == nil {
		if reason == "" {
			t.Error("neither a base nor a reason")
		}
		t.Logf("no base: %s", reason)
		return
	}
	defer b.Close()
	if b.dir.has("cgroup.type") {
		t.Errorf("%s was accepted and is not the true root", b.Path())
	}
}
