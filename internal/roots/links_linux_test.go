package roots

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/testenv"
)

// TestPlantedLinksAreRefused tries each place where a link can stand; every row
// that is refused has a twin where the same link is out of reach and followed.
func TestPlantedLinksAreRefused(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "ws/sub/", "ws/sub/deep/", "safe/", "target/in/",
		"ws/l -> ../target", "ws/sub/deep/l -> "+dir+"/target", "safe/l -> ../target",
		"safe/via -> ../ws/l", "ws/rel -> sub")
	in := func(p string) string { return filepath.Join(dir, p) }
	ws := []string{in("ws")}
	for _, c := range []struct {
		name     string
		path     string
		writable []string
		link     string // refused because of this one; "" is followed
	}{
		{"link in the root", in("ws/l"), ws, in("ws/l")},
		{"the same, nothing writable", in("ws/l"), nil, ""},
		{"link as an intermediate component", in("ws/l/in"), ws, in("ws/l")},
		{"link deep beneath the root", in("ws/sub/deep/l"), ws, in("ws/sub/deep/l")},
		{"the same, only a sibling writable", in("ws/sub/deep/l"), []string{in("target")}, ""},
		{"link out of reach", in("safe/l"), ws, ""},
		{"link out of reach that leads through one in reach", in("safe/via/in"), ws, in("ws/l")},
		{"link that stays inside", in("ws/rel"), ws, in("ws/rel")},
		{"missing below a planted link", in("ws/l/none"), ws, in("ws/l")},
		{"everything writable", in("ws/l"), []string{"/"}, ""},
		{"a writable root through the link of another", in("safe"), []string{in("ws"), in("ws/l")}, in("ws/l")},
		{"a root reached through a link elsewhere is writable where it leads", in("target/in"), []string{in("safe/l")}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Survey([]string{c.path}, Writability{Paths: c.writable, Label: func(string) string { return "list[0]" }})
			if err == nil {
				defer r.Close()
			}
			if c.link == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			want := "is reached through the link " + c.link + ", which a confined command could have made; name the place that it leads to"
			var refusal *plan.Refusal
			if !errors.As(err, &refusal) || refusal.Reason != want || refusal.List != "list[0]" {
				t.Errorf("refused with %v, want %q", err, want)
			}
		})
	}
}

// TestRootRedirectedToSlash: a planted link to "/" among the roots must not be
// taken for a policy that lets everything be written.
func TestRootRedirectedToSlash(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "ws/", "ws/nested -> /", "ws/l -> ../safe", "safe/")
	_, err := Survey([]string{filepath.Join(dir, "ws/l")}, Writability{Paths: []string{filepath.Join(dir, "ws"), filepath.Join(dir, "ws/nested")}})
	if err == nil || !strings.Contains(err.Error(), "nested") {
		t.Fatalf("not refused for the nested root: %v", err)
	}
}

func TestMemoryOfEarlierPolicies(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "a/l -> ../t", "b/", "t/")
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	var memory Memory
	second := func() error {
		r, err := Survey([]string{filepath.Join(a, "l")}, Writability{Paths: []string{b}, Memory: &memory})
		if err == nil {
			memory.Add(r)
			err = r.Close()
		}
		return err
	}
	must(t, second())
	r, err := Survey(nil, Writability{Paths: []string{a}, Memory: &memory})
	must(t, err)
	memory.Add(r)
	r.Close()
	if err := second(); err == nil || !strings.Contains(err.Error(), "could have made") {
		t.Fatalf("what an earlier command could write was forgotten: %v", err)
	}
	// By inode, not by spelling: the directory keeps its past under a new name.
	moved := filepath.Join(dir, "moved")
	must(t, os.Rename(a, moved))
	if _, err := Survey([]string{filepath.Join(moved, "l")}, Writability{Memory: &memory}); err == nil {
		t.Fatal("a renamed directory was forgotten")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "a/", "safe/l -> ../a")
	r, err := Survey(nil, Writability{Paths: []string{filepath.Join(dir, "a")}})
	must(t, err)
	defer r.Close()
	var memory Memory
	for i := 0; i <= maxRemembered; i++ {
		memory.what.addTree(tree{"0:0", "/" + strings.Repeat("x", i%200) + string(rune('a'+i%26)) + filepath.Join("/", "n", string(rune(0x4e00+i)))})
	}
	memory.Add(r)
	if !memory.what.all || len(memory.what.trees) != 0 {
		t.Fatalf("not widened: all=%v, %d trees", memory.what.all, len(memory.what.trees))
	}
	if _, err := Survey([]string{filepath.Join(dir, "safe/l")}, Writability{Memory: &memory}); err == nil {
		t.Fatal("a full memory opened the fence")
	}
	r2, err := Survey([]string{filepath.Join(dir, "safe")}, Writability{Memory: &memory})
	must(t, err)
	r2.Close()
}

// TestMemoryOfEverything: after a policy that let "/" be written, the modes alone
// tell what a command could have made.
func TestMemoryOfEverything(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "l -> /usr")
	r, err := Survey(nil, Writability{Paths: []string{"/"}})
	must(t, err)
	var memory Memory
	memory.Add(r)
	r.Close()
	if _, err := Survey([]string{filepath.Join(dir, "l")}, Writability{Memory: &memory}); err == nil {
		t.Error("a link in this user's own directory was followed")
	}
	const system = "/usr/bin/awk" // a link to a link of root's, where there is one
	if info, err := os.Lstat(system); err != nil || info.Mode()&os.ModeSymlink == 0 {
		return
	}
	r, err = Survey([]string{system}, Writability{Memory: &memory})
	if root := os.Getuid() == 0; (err == nil) == root {
		t.Errorf("root is %v, error %v", root, err)
	}
	if err == nil {
		r.Close()
	}
}

// TestShortageIsNoRefusal: having no descriptors is not the policy's fault.
func TestShortageIsNoRefusal(t *testing.T) {
	s := &survey{}
	var refusal *plan.Refusal
	if err := s.unreachable("/x", fmt.Errorf("look: %w", unix.EMFILE)); errors.As(err, &refusal) {
		t.Errorf("refused: %v", err)
	}
	if err := s.unreachable("/x", fmt.Errorf("look: %w", unix.ENAMETOOLONG)); !errors.As(err, &refusal) {
		t.Errorf("not refused: %v", err)
	}
}

func TestSharedDirectories(t *testing.T) {
	t.Setenv("TMPDIR", "/no/such/place")
	got := strings.Join(SharedDirs([]string{"/m"}), " ")
	if got != "/tmp /var/tmp /no/such/place /m" {
		t.Fatalf("shared: %s", got)
	}
	dir := testDir(t)
	build(t, dir, "m/l -> ../t", "t/")
	link := filepath.Join(dir, "m/l")
	r, err := Survey([]string{link}, Writability{Shared: SharedDirs(nil)})
	must(t, err)
	r.Close()
	if _, err := Survey([]string{link}, Writability{Shared: SharedDirs([]string{filepath.Join(dir, "m")})}); err == nil {
		t.Fatal("a link in a mutable directory was followed")
	}
	tmp, err := os.MkdirTemp("/tmp", "sandboxd-roots-")
	must(t, err)
	defer os.RemoveAll(tmp)
	must(t, os.Symlink(dir, filepath.Join(tmp, "l")))
	if _, err := Survey([]string{filepath.Join(tmp, "l")}, Writability{Shared: SharedDirs(nil)}); err == nil {
		t.Fatal("a link under /tmp was followed")
	}
}

func TestMagicLinksAreNeverFollowed(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "l -> /proc/self/cwd")
	for _, path := range []string{"/proc/self/root", "/proc/self", filepath.Join(dir, "l"), "/dev/fd/0"} {
		// Not even where everything is writable anyway.
		_, err := Survey([]string{path}, Writability{Paths: []string{"/"}})
		if err == nil || !strings.Contains(err.Error(), "never followed") {
			t.Errorf("%s: %v", path, err)
		}
	}
	r, err := Survey([]string{"/proc/sys"}, Writability{})
	must(t, err)
	r.Close()
}

func TestLinkOfAnotherUserInStickyDirectory(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "needs root to make another user's link")
	}
	dir := testDir(t)
	build(t, dir, "shared/", "target/")
	shared := filepath.Join(dir, "shared")
	must(t, os.Chmod(shared, 0o777|os.ModeSticky))
	must(t, os.Symlink("../target", filepath.Join(shared, "theirs")))
	must(t, os.Lchown(filepath.Join(shared, "theirs"), 1001, 1001))
	must(t, os.Symlink("../target", filepath.Join(shared, "ours")))
	if _, err := Survey([]string{filepath.Join(shared, "theirs")}, Writability{}); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("theirs: %v", err)
	}
	r, err := Survey([]string{filepath.Join(shared, "ours")}, Writability{})
	must(t, err)
	r.Close()
}

// TestBindMountSecondParent: a directory that is writable under another name.
func TestBindMountSecondParent(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "ws/sub/", "ws/sub/l -> ../../t", "ws/m/", "data/d/l -> ../../t", "other/", "t/", "free/l -> ../t")
	in := func(p string) string { return filepath.Join(dir, p) }
	bind := func(from, to string) {
		if err := unix.Mount(in(from), in(to), "", unix.MS_BIND, ""); err != nil {
			testenv.Skip(t, "mount", "cannot mount: "+err.Error())
		}
		t.Cleanup(func() { unix.Unmount(in(to), unix.MNT_DETACH) })
	}
	bind("ws/sub", "other") // the workspace under a second name
	bind("data", "ws/m")    // something else inside the workspace
	w := Writability{Paths: []string{in("ws")}}
	for path, refused := range map[string]bool{
		in("other/l"):  true,
		in("data/d/l"): true,
		in("free/l"):   false,
	} {
		r, err := Survey([]string{path}, w)
		if (err != nil) != refused {
			t.Errorf("%s: refused is %v, want %v", path, err, refused)
		}
		if err == nil {
			r.Close()
		}
	}
}

func TestNosymfollowMount(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "m/", "t/")
	m := filepath.Join(dir, "m")
	const msNosymfollow = 0x100
	if err := unix.Mount("none", m, "tmpfs", msNosymfollow, ""); err != nil {
		testenv.Skip(t, "mount", "cannot mount: "+err.Error())
	}
	defer unix.Unmount(m, unix.MNT_DETACH)
	must(t, os.Symlink(filepath.Join(dir, "t"), filepath.Join(m, "l")))
	if _, err := Survey([]string{filepath.Join(m, "l")}, Writability{}); err == nil || !strings.Contains(err.Error(), "nosymfollow") {
		t.Fatalf("followed: %v", err)
	}
}
