package roots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/testenv"
)

func idOf(t *testing.T, path string) host.ID {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return host.ID{Dev: uint64(st.Dev), Ino: st.Ino}
}

// TestSwappedComponentNeverLeadsOutside: while a component turns from a directory
// into a link and back, what is reached is the real directory or nothing.
func TestSwappedComponentNeverLeadsOutside(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "ws/mid/in/", "out/in/", "ws/spare -> ../out")
	in := func(p string) string { return filepath.Join(dir, p) }
	inside := map[host.ID]bool{idOf(t, in("ws/mid")): true, idOf(t, in("ws/mid/in")): true}
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Add(1)
	go func() {
		defer swapper.Done()
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, in("ws/mid"), unix.AT_FDCWD, in("ws/spare"), unix.RENAME_EXCHANGE)
			}
		}
	}()
	reached, refused := 0, 0
	for i := 0; i < 2000 && (i < 200 || reached == 0 || refused == 0); i++ {
		for _, path := range []string{in("ws/mid"), in("ws/mid/in")} {
			r, err := Survey([]string{path}, Writability{Paths: []string{in("ws")}})
			if err != nil {
				refused++
				continue
			}
			if i%2 == 0 { // reach it again by name, as when there are few descriptors
				for p, fd := range r.kept {
					if p != "/" {
						closeFD(fd)
						delete(r.kept, p)
					}
				}
			}
			if f, err := r.Dup(path); err == nil {
				node, err := nodeOf(int(f.Fd()))
				if err != nil || !inside[node.ID] {
					t.Errorf("%s: reached %+v, %v", path, node, err)
				}
				f.Close()
				reached++
			}
			r.Close()
		}
	}
	close(stop)
	swapper.Wait()
	if reached == 0 || refused == 0 {
		t.Errorf("the race was never met: reached %d times, refused %d times", reached, refused)
	}
}

// TestReplacedAfterSurvey: another directory of that name is not handed out.
func TestReplacedAfterSurvey(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "a/x/", "a/y/")
	x, y := filepath.Join(dir, "a/x"), filepath.Join(dir, "a/y")
	want := idOf(t, x)
	r, err := Survey([]string{x, y}, Writability{})
	must(t, err)
	defer r.Close()
	closeFD(r.kept[y])
	delete(r.kept, y)
	for _, path := range []string{x, y} {
		must(t, os.Rename(path, path+".old"))
		must(t, os.Mkdir(path, 0o755))
	}
	f, err := r.Dup(x) // held: still the very object that was judged
	must(t, err)
	defer f.Close()
	if node, _ := nodeOf(int(f.Fd())); node.ID != want {
		t.Errorf("got %v, want %v", node.ID, want)
	}
	if f, err := r.Dup(y); err == nil {
		f.Close()
		t.Error("another directory was handed out")
	}
}

// TestManyPathsWithFewDescriptors: more paths than descriptors are reached all the
// same, and every one of them can still be had.
func TestManyPathsWithFewDescriptors(t *testing.T) {
	dir := testDir(t)
	var paths []string
	for i := range 400 {
		path := filepath.Join(dir, fmt.Sprintf("p%d/q/r%d", i%200, i))
		must(t, os.MkdirAll(path, 0o755))
		paths = append(paths, path)
	}
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: old.Max}))
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
	r, err := Survey(paths, Writability{Paths: paths[:50]})
	must(t, err)
	defer r.Close()
	if len(r.kept)+len(r.dirs) > 200 {
		t.Errorf("%d descriptors are held", len(r.kept)+len(r.dirs))
	}
	for _, path := range paths {
		f, err := r.Dup(path)
		must(t, err)
		if node, _ := nodeOf(int(f.Fd())); node.ID != r.Layout()[path].ID {
			t.Errorf("%s: another inode", path)
		}
		f.Close()
	}
}

// TestNoDescriptorIsLeaked counts them before and after, with an error too.
func TestNoDescriptorIsLeaked(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "ws/f", "ws/l -> ../t", "t/")
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(names)
	}
	before := count()
	for range 20 {
		r, err := Survey([]string{filepath.Join(dir, "ws/f"), "/dev/null", "/usr/bin"}, Writability{Paths: []string{filepath.Join(dir, "ws")}})
		must(t, err)
		if count() <= before {
			t.Fatal("nothing is held")
		}
		p, err := Place([]plan.Op{opFor(filepath.Join(dir, "ws/new"))}, r)
		must(t, err)
		must(t, p.Release())
		if _, err := Place([]plan.Op{opFor("/no/such/place")}, r); err == nil {
			t.Fatal("placed in a directory that was never surveyed")
		}
		r.Close()
		if _, err := Survey([]string{filepath.Join(dir, "ws/l")}, Writability{Paths: []string{filepath.Join(dir, "ws")}}); err == nil {
			t.Fatal("no refusal")
		}
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestOptionalPathsRefuseNothing(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "ws/bin -> ../tools", "ws/real/", "tools/")
	in := func(p string) string { return filepath.Join(dir, p) }
	w := Writability{Paths: []string{in("ws")}, Optional: []string{in("ws/bin"), in("ws/real"), in("tools"), "/proc/self/cwd"}}
	r, err := Survey(nil, w)
	must(t, err)
	defer r.Close()
	for path, kind := range map[string]host.Kind{in("ws/bin"): host.Denied, in("ws/real"): host.Dir, in("tools"): host.Dir} {
		if got := r.Layout()[path].Kind; got != kind {
			t.Errorf("%s: kind %d, want %d", path, got, kind)
		}
	}
	if _, err := Survey([]string{in("ws/bin")}, w); err == nil {
		t.Error("the same link refuses nothing where the policy names it")
	}
}

// What can be reached stays so, though an optional path beyond it fails: others are
// reached through the same links.
func TestOptionalPathThatFails(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "only root mounts")
	}
	dir := testDir(t)
	build(t, dir, "real/keys", "real/dead/", "link -> real")
	in := func(p string) string { return filepath.Join(dir, p) }
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		testenv.Skip(t, "fuse", err.Error())
	}
	err = unix.Mount("dead", in("real/dead"), "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse.Fd()))
	fuse.Close() // it answers with ENOTCONN now
	if err != nil {
		testenv.Skip(t, "fuse", err.Error())
	}
	defer unix.Unmount(in("real/dead"), unix.MNT_DETACH)
	if _, err := os.Stat(in("real/dead/bin")); !errors.Is(err, unix.ENOTCONN) {
		t.Fatalf("a file system that nobody serves answers %v", err)
	}
	r, err := Survey([]string{in("link/keys")}, Writability{Narrow: []string{in("link/keys")}, Optional: []string{in("link/dead/bin")}})
	must(t, err)
	defer r.Close()
	if res := r.Layout().Resolve(in("link/keys")); res.Err != nil || res.Path != in("real/keys") {
		t.Errorf("what is protected cannot be found any more: %+v", res)
	}
	if res := r.Layout().Resolve(in("link/dead/bin")); res.Node.Kind == host.Dir {
		t.Errorf("what failed: %+v", res)
	}
}

// A machine that is short of descriptors gives an error, and never a layout in which the
// second name of what is protected is missing.
func TestSecondNameInAShortage(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "only root mounts")
	}
	dir := testDir(t)
	build(t, dir, "keys/", "other/name/")
	in := func(p string) string { return filepath.Join(dir, p) }
	must(t, unix.Mount(in("keys"), in("other/name"), "", unix.MS_BIND, ""))
	defer unix.Unmount(in("other/name"), unix.MNT_DETACH)
	var was unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	next, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	must(t, err)
	must(t, unix.Close(next))
	failed, found := 0, 0
	for free := range 60 {
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next + free), Max: was.Max}))
		r, err := Survey([]string{in("keys")}, Writability{Narrow: []string{in("keys")}})
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
		if err != nil {
			failed++
			continue
		}
		if got := r.aliases[in("keys")]; !slices.Equal(got, []string{in("other/name")}) {
			t.Errorf("%d descriptors: second names %q", free, got)
		}
		found++
		r.Close()
	}
	if failed == 0 || found == 0 {
		t.Errorf("%d failed and %d did not", failed, found)
	}
}

func TestClosedDirectory(t *testing.T) {
	if os.Getuid() == 0 {
		testenv.Skip(t, "not-root", "modes do not stop root")
	}
	dir := testDir(t)
	build(t, dir, "shut/in/")
	shut := filepath.Join(dir, "shut")
	must(t, os.Chmod(shut, 0))
	defer os.Chmod(shut, 0o755)
	r, err := Survey([]string{filepath.Join(shut, "in/deep")}, Writability{})
	must(t, err)
	defer r.Close()
	l := r.Layout()
	if l[shut].Kind != host.Dir || l[filepath.Join(shut, "in")].Kind != host.Denied {
		t.Errorf("layout: %+v", l)
	}
}
