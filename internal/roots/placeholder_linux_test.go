package roots

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/testenv"
)

func TestPlaceholderComesAndGoes(t *testing.T) {
	dir := testDir(t)
	for _, name := range []string{".vscode", "commondir"} {
		path := filepath.Join(dir, name)
		p := placeOne(t, path)
		info, err := os.Lstat(path)
		must(t, err)
		if isDir := name != "commondir"; info.IsDir() != isDir || isDir && info.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %v", name, info.Mode())
		}
		if name == "commondir" {
			if text, err := os.ReadFile(path); err != nil || string(text) != "." {
				t.Errorf("contents %q, %v", text, err)
			}
		}
		if flags, _ := unix.FcntlInt(uintptr(p.list[0].fd), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 {
			t.Error("the lock would be inherited")
		}
		must(t, p.Release())
		must(t, p.Release())
		if exists(path) {
			t.Errorf("%s is left", name)
		}
	}
}

// TestSharedPlaceholder: whoever releases last removes it, in both orders.
func TestSharedPlaceholder(t *testing.T) {
	path := filepath.Join(testDir(t), ".vscode")
	for _, first := range []string{"own", "other"} {
		t.Run(first, func(t *testing.T) {
			var other *child
			var p *Placeholders
			if first == "own" {
				p = placeOne(t, path)
				other = start(t, "place", path)
				must(t, p.Release())
			} else {
				other = start(t, "place", path)
				p = placeOne(t, path)
				other.end(t)
			}
			if !exists(path) {
				t.Fatal("removed under another process's execution")
			}
			if first == "own" {
				other.end(t)
			} else {
				must(t, p.Release())
			}
			if exists(path) {
				t.Fatal("left behind")
			}
		})
	}
}

// TestOwnExecutionsShare: the next execution starts before the last one released.
func TestOwnExecutionsShare(t *testing.T) {
	path := filepath.Join(testDir(t), ".vscode")
	a := placeOne(t, path)
	b := placeOne(t, path)
	must(t, a.Release())
	if !exists(path) {
		t.Fatal("removed under the next execution")
	}
	must(t, b.Release())
	if exists(path) {
		t.Fatal("left behind")
	}
}

// TestLeftoverOfKilledProcess is removed by the next execution that plans it, but
// not while the dead process's jail still stands on it.
func TestLeftoverOfKilledProcess(t *testing.T) {
	dir := testDir(t)
	path := filepath.Join(dir, ".vscode")
	other := start(t, "place", path)
	jail := start(t, "mount", path)
	other.kill()
	if !exists(path) {
		t.Fatal("nothing was left")
	}
	must(t, placeOne(t, path).Release())
	if !exists(path) {
		t.Fatal("removed under a jail that still runs")
	}
	jail.kill()
	must(t, placeOne(t, path).Release())
	if exists(path) {
		t.Fatal("a leftover is left")
	}
}

// TestJailSeenUnderAnotherName: the mount is recognised by where it lies in the
// file system when a bind mount gives the workspace a second name.
func TestJailSeenUnderAnotherName(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "ws/", "alias/")
	if err := unix.Mount(filepath.Join(dir, "ws"), filepath.Join(dir, "alias"), "", unix.MS_BIND, ""); err != nil {
		testenv.Skip(t, "mount", "cannot mount: "+err.Error())
	}
	defer unix.Unmount(filepath.Join(dir, "alias"), unix.MNT_DETACH)
	p := placeOne(t, filepath.Join(dir, "ws/.vscode"))
	jail := start(t, "mount", filepath.Join(dir, "alias/.vscode"))
	must(t, p.Release())
	if !exists(filepath.Join(dir, "ws/.vscode")) {
		t.Fatal("removed under a jail that still runs")
	}
	jail.kill()
	must(t, placeOne(t, filepath.Join(dir, "ws/.vscode")).Release())
	if exists(filepath.Join(dir, "ws/.vscode")) {
		t.Fatal("left behind")
	}
}

func TestWhatTheHostPutThereStays(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "empty/")
	t.Run("something in the directory", func(t *testing.T) {
		path := filepath.Join(dir, ".vscode")
		p := placeOne(t, path)
		must(t, os.WriteFile(filepath.Join(path, "settings"), nil, 0o644))
		must(t, p.Release())
		if !exists(filepath.Join(path, "settings")) {
			t.Fatal("the host's file is gone")
		}
		r, err := Survey([]string{path}, Writability{})
		must(t, err)
		defer r.Close()
		if n, _ := r.Node(path); n.Mode != 0o700 {
			t.Errorf("it is still taken for a placeholder: %+v", n)
		}
	})
	t.Run("another directory of that name", func(t *testing.T) {
		path := filepath.Join(dir, ".idea")
		p := placeOne(t, path)
		must(t, os.Rename(path, path+".moved"))
		must(t, os.Mkdir(path, 0o755))
		must(t, p.Release())
		if !exists(path) {
			t.Fatal("the host's directory is gone")
		}
	})
	t.Run("other contents", func(t *testing.T) {
		path := filepath.Join(dir, "commondir")
		p := placeOne(t, path)
		must(t, os.WriteFile(path, []byte("../x"), 0o644))
		must(t, p.Release())
		if text, _ := os.ReadFile(path); string(text) != "../x" {
			t.Fatalf("the host's file holds %q", text)
		}
	})
	t.Run("an empty directory of the host", func(t *testing.T) {
		r, err := Survey([]string{filepath.Join(dir, "empty")}, Writability{})
		must(t, err)
		defer r.Close()
		p, err := Place([]plan.Op{opFor(filepath.Join(dir, "empty"))}, r)
		must(t, err)
		must(t, p.Release())
		if !exists(filepath.Join(dir, "empty")) {
			t.Fatal("an unmarked directory was removed")
		}
	})
}

// TestMarkWithoutAttributes: the modification time alone is a mark, too.
func TestMarkWithoutAttributes(t *testing.T) {
	path := filepath.Join(testDir(t), ".vscode")
	p := placeOne(t, path)
	fd := p.list[0].fd
	unmark(fd)
	if marked(fd) {
		t.Fatal("still marked")
	}
	must(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{markTime, markTime}, 0))
	if !marked(fd) {
		t.Fatal("the time is no mark")
	}
	must(t, os.WriteFile(filepath.Join(path, "x"), nil, 0o644))
	must(t, os.Remove(filepath.Join(path, "x")))
	if marked(fd) {
		t.Fatal("a directory that was used is still marked")
	}
	must(t, p.Release()) // known as this process's own
	if exists(path) {
		t.Fatal("left behind")
	}
}

func TestPlaceRefusals(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "ro/", "small/", "l/", "shut/")
	try := func(path string) error {
		r, err := Survey([]string{path}, Writability{})
		must(t, err)
		defer r.Close()
		p, err := Place([]plan.Op{opFor(path)}, r)
		if err == nil {
			p.Release()
		}
		return err
	}
	check := func(name, path, want string) {
		t.Helper()
		var refusal *plan.Refusal
		if err := try(path); !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, want) || refusal.Path != path {
			t.Errorf("%s: %v", name, err)
		}
	}
	if os.Getuid() == 0 {
		for target, opts := range map[string]string{"ro": "", "small": "nr_inodes=1"} {
			flags := uintptr(0)
			if target == "ro" {
				flags = unix.MS_RDONLY
			}
			path := filepath.Join(dir, target)
			if err := unix.Mount("none", path, "tmpfs", flags, opts); err != nil {
				testenv.Skip(t, "mount", "cannot mount: "+err.Error())
			}
			defer unix.Unmount(path, unix.MNT_DETACH)
		}
		check("read-only", filepath.Join(dir, "ro/x"), "read-only file system")
		check("full", filepath.Join(dir, "small/x"), "make room")
	} else {
		must(t, os.Chmod(filepath.Join(dir, "shut"), 0o555))
		check("not writable", filepath.Join(dir, "shut/x"), "may not write")
	}
	// A link that appears after the survey is not followed.
	path := filepath.Join(dir, "late")
	r, err := Survey([]string{path}, Writability{})
	must(t, err)
	defer r.Close()
	must(t, os.Symlink(filepath.Join(dir, "l"), path))
	if _, err := Place([]plan.Op{opFor(path)}, r); err == nil {
		t.Error("a planted link was taken for a placeholder")
	}
	must(t, os.Remove(path))
	must(t, try(path))
}

// TestPlaceCleansUpAfterItself: one that fails takes the others along.
func TestPlaceCleansUpAfterItself(t *testing.T) {
	dir := testDir(t)
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	r, err := Survey([]string{good, bad}, Writability{})
	must(t, err)
	defer r.Close()
	must(t, os.Symlink("/", bad))
	if _, err := Place([]plan.Op{opFor(good), opFor(bad)}, r); err == nil {
		t.Fatal("no error")
	}
	if exists(good) {
		t.Fatal("a placeholder is left")
	}
	must(t, os.Remove(bad))
	p, err := Place([]plan.Op{opFor(good), opFor(bad)}, r)
	must(t, err)
	if !exists(good) || !exists(bad) {
		t.Fatal("not made")
	}
	must(t, p.Release())
}

// TestPlacedIsWhatTheNameLeadsTo: while another execution removes the placeholder,
// the one that was opened may be gone from its name before the lock is had.
func TestPlacedIsWhatTheNameLeadsTo(t *testing.T) {
	t.Run("replaced before it is locked", replacedBeforeTheLock)
	path := filepath.Join(testDir(t), ".vscode")
	r, err := Survey([]string{path}, Writability{})
	must(t, err)
	defer r.Close()
	const rounds = 1500
	other := make(chan error, 1)
	go func() {
		r, err := Survey([]string{path}, Writability{})
		if err != nil {
			other <- err
			return
		}
		defer r.Close()
		for range rounds {
			p, err := Place([]plan.Op{opFor(path)}, r)
			if err == nil {
				err = p.Release()
			}
			if err != nil {
				other <- err
				return
			}
		}
		other <- nil
	}()
	for range rounds {
		p, err := Place([]plan.Op{opFor(path)}, r)
		must(t, err)
		id, _ := p.ID(path)
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil || st.Ino != id.Ino {
			t.Fatalf("the name leads to inode %d (%v), the lock is on %d", st.Ino, err, id.Ino)
		}
		must(t, p.Release())
	}
	must(t, <-other)
	if exists(path) {
		t.Error("left behind")
	}
}

// replacedBeforeTheLock puts another directory in the place of the one that was opened.
func replacedBeforeTheLock(t *testing.T) {
	path := filepath.Join(testDir(t), ".vscode")
	lock, replaced := flock, false
	defer func() { flock = lock }()
	flock = func(fd, how int) error {
		if how == unix.LOCK_SH && !replaced {
			replaced = true
			must(t, os.Remove(path))
			must(t, os.Mkdir(path, 0o700))
		}
		return lock(fd, how)
	}
	p := placeOne(t, path)
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	if id, _ := p.ID(path); !replaced || st.Ino != id.Ino {
		t.Errorf("the name leads to inode %d, the lock is on %d", st.Ino, id.Ino)
	}
	must(t, p.Release())
	if !exists(path) {
		t.Error("another's directory was removed")
	}
}

// TestOnePlanHoldsAnInodeTwice: a mount of the host gives the directory two names.
func TestOnePlanHoldsAnInodeTwice(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "ws/", "alias/")
	if err := unix.Mount(filepath.Join(dir, "ws"), filepath.Join(dir, "alias"), "", unix.MS_BIND, ""); err != nil {
		testenv.Skip(t, "mount", "cannot mount: "+err.Error())
	}
	defer unix.Unmount(filepath.Join(dir, "alias"), unix.MNT_DETACH)
	one := filepath.Join(dir, "ws/n")
	r, err := Survey([]string{one}, Writability{Narrow: []string{one}})
	must(t, err)
	defer r.Close()
	names := r.Aliases()[one]
	if len(names) != 1 || names[0] != filepath.Join(dir, "alias/n") {
		t.Fatalf("other names: %v", names)
	}
	p, err := Place([]plan.Op{opFor(one), opFor(names[0])}, r)
	must(t, err)
	a, _ := p.ID(one)
	if b, _ := p.ID(names[0]); a != b {
		t.Errorf("two inodes: %v, %v", a, b)
	}
	must(t, p.Release())
	if exists(one) {
		t.Error("left behind")
	}
}

// TestLeftoverThatIsGone: the execution before this one may remove its placeholder
// between the look at it and the question what it is.
func TestLeftoverThatIsGone(t *testing.T) {
	path := filepath.Join(testDir(t), ".vscode")
	p := placeOne(t, path)
	r, err := newReached()
	must(t, err)
	defer r.Close()
	s := &survey{r: r}
	s.places, err = newPlaces(r, nil)
	must(t, err)
	if _, err := s.walk(filepath.Join(path, "deep")); err != nil {
		t.Fatal(err)
	}
	must(t, p.Release())
	r.notePlaceholder(filepath.Join(path, "deep"))
	if n := r.Layout()[path]; !n.Placeholder && n.Kind != host.Missing {
		t.Errorf("what is gone counts as kind %d", n.Kind)
	}
}
