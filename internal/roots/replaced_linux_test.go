package roots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
)

// beforeRename calls change before a rename, by their number; forbid is what each answers.
func beforeRename(t *testing.T, forbid error, changes ...func()) {
	rename, calls := renameat2, 0
	t.Cleanup(func() { renameat2 = rename })
	renameat2 = func(a int, from string, b int, to string, flags uint) error {
		if calls++; calls <= len(changes) {
			changes[calls-1]()
		}
		if forbid != nil {
			return forbid
		}
		return rename(a, from, b, to, flags)
	}
}

// put renames a file of the host's over a name, as git does.
func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path+".lock", []byte(text), 0o644))
	must(t, os.Rename(path+".lock", path))
}

// only fails unless a directory holds exactly these files, with these contents.
func only(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if text, err := os.ReadFile(filepath.Join(dir, e.Name())); err != nil || want[e.Name()] != string(text) {
			t.Errorf("%s holds %q, %v", e.Name(), text, err)
		}
	}
	if len(entries) != len(want) {
		t.Errorf("%d entries: %v", len(entries), entries)
	}
}

// placeTwo places two paths; the second is claimed first.
func placeTwo(t *testing.T, first, second string) *Placeholders {
	t.Helper()
	r, err := Survey([]string{first, second}, Writability{})
	must(t, err)
	t.Cleanup(func() { r.Close() })
	p, err := Place([]plan.Op{opFor(first), opFor(second)}, r)
	must(t, err)
	return p
}

// whenClaimed calls change as soon as the release locks a path for itself.
func whenClaimed(t *testing.T, path string, change func()) {
	lock := flock
	t.Cleanup(func() { flock = lock })
	flock = func(fd, how int) error {
		if at, _ := os.Readlink(fdPath(fd)); at == path && how == unix.LOCK_EX {
			change()
		}
		return lock(fd, how)
	}
}

// TestReplacedBeforeItIsRemoved: between the claim of a placeholder and its removal the
// host puts something else in its place. That stays, whenever it comes.
func TestReplacedBeforeItIsRemoved(t *testing.T) {
	for _, name := range []string{"commondir", ".env"} {
		for when, arm := range map[string]func(t *testing.T, later string, change func()){
			"while another one is claimed": whenClaimed,
			"just before it is moved":      func(t *testing.T, _ string, change func()) { beforeRename(t, nil, change) },
			"where nothing can be moved":   func(t *testing.T, _ string, change func()) { beforeRename(t, unix.EINVAL, change) },
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				dir := testDir(t)
				path, later := filepath.Join(dir, name), filepath.Join(dir, ".vscode")
				p, came := placeTwo(t, later, path), false
				arm(t, later, func() { came = true; put(t, path, "the host's") })
				must(t, p.Release())
				if only(t, dir, map[string]string{name: "the host's"}); !came {
					t.Error("nothing was replaced")
				}
			})
		}
	}
	t.Run("a directory", func(t *testing.T) {
		dir := testDir(t)
		path, later := filepath.Join(dir, ".idea"), filepath.Join(dir, ".vscode")
		p, came := placeTwo(t, later, path), false
		whenClaimed(t, later, func() {
			came = true
			must(t, os.Mkdir(path+".new", 0o755))
			must(t, unix.Rename(path+".new", path))
		})
		must(t, p.Release())
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o755 || !came || exists(later) {
			t.Errorf("the host's directory: %v, %v", info, err)
		}
	})
	t.Run("twice", func(t *testing.T) {
		dir := testDir(t)
		path := filepath.Join(dir, "commondir")
		p := placeOne(t, path)
		beforeRename(t, nil, func() { put(t, path, "older") }, func() { put(t, path, "newer") })
		if err := p.Release(); err == nil || !strings.Contains(err.Error(), asidePrefix+"commondir") {
			t.Errorf("the error names no file: %v", err)
		}
		only(t, dir, map[string]string{"commondir": "newer", asidePrefix + "commondir": "older"})
	})
	t.Run("where nothing can be moved, and nothing comes", func(t *testing.T) {
		dir := testDir(t)
		p := placeOne(t, filepath.Join(dir, "commondir"))
		beforeRename(t, unix.EINVAL)
		must(t, p.Release())
		only(t, dir, nil)
	})
}

// TestLeftAside: what a helper left aside that was killed while it removed its placeholder
// goes with the next one, by a start or by a release. What is none stays where it is, and is said: a
// command can have made it, and under the other name the host would believe it.
func TestLeftAside(t *testing.T) {
	dir := testDir(t)
	path := filepath.Join(dir, "commondir")
	aside := filepath.Join(dir, asidePrefix+"commondir")
	killed := func() {
		p := placeOne(t, path)
		must(t, os.Rename(path, aside))
		p.list[0].close()
	}
	killed()
	p := placeOne(t, path)
	only(t, dir, map[string]string{"commondir": "."})
	must(t, p.Release())
	only(t, dir, nil)

	killed()
	must(t, os.Rename(aside, aside+"x"))
	p = placeOne(t, path)
	must(t, os.Rename(aside+"x", aside))
	must(t, p.Release())
	only(t, dir, nil)

	other := placeOne(t, path) // another helper is about to unlink it
	must(t, flock(other.list[0].fd, unix.LOCK_EX))
	must(t, os.Rename(path, aside))
	p = placeOne(t, path)
	only(t, dir, map[string]string{"commondir": ".", asidePrefix + "commondir": "."})
	must(t, p.Release())
	only(t, dir, map[string]string{asidePrefix + "commondir": "."})
	other.list[0].close()

	put(t, aside, "planted")
	if err := placeOne(t, path).Release(); err == nil || !strings.Contains(err.Error(), aside) {
		t.Errorf("not said: %v", err)
	}
	only(t, dir, map[string]string{asidePrefix + "commondir": "planted"})
}

// TestStandInReplaced: so with what bubblewrap made where a mount point was taken away.
func TestStandInReplaced(t *testing.T) {
	for when, change := range map[string]bool{"nothing comes": false, "a file comes": true} {
		dir := testDir(t)
		path := filepath.Join(dir, "config")
		r := surveyed(t, path)
		since := time.Now()
		must(t, os.WriteFile(path, nil, 0o444))
		must(t, os.Chmod(path, 0o444))
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_NOW}}, 0))
		want := map[string]string{}
		if change {
			want["config"] = "the host's"
			beforeRename(t, nil, func() { put(t, path, "the host's") })
		}
		must(t, RemoveStandIn(path, r, since, time.Now()))
		t.Log(when)
		only(t, dir, want)
	}
}

// TestReplacedAsItIsMade: what the host puts in the place of a mount point that was made
// a moment ago is not taken for it: not written, not marked, not removed.
func TestReplacedAsItIsMade(t *testing.T) {
	tmpfile = unix.O_CREAT | unix.O_DIRECTORY // EINVAL or EISDIR
	makeDir, makeFile := mkdirat, create
	defer func() { tmpfile, mkdirat, create = unix.O_TMPFILE, makeDir, makeFile }()
	t.Run("a file", func(t *testing.T) {
		dir := testDir(t)
		path, came := filepath.Join(dir, "commondir"), false
		create = func(at int, name string, flags int, mode uint32) (int, error) {
			fd, err := makeFile(at, name, flags, mode)
			if err == nil {
				came = true
				put(t, path, "the host's")
			}
			return fd, err
		}
		p := placeOne(t, path)
		only(t, dir, map[string]string{"commondir": "the host's"})
		must(t, p.Release())
		if only(t, dir, map[string]string{"commondir": "the host's"}); !came {
			t.Error("nothing was replaced")
		}
	})
	for name, mode := range map[string]uint32{"a directory": 0o755, "a directory with something in it": madeDirMode} {
		t.Run(name, func(t *testing.T) {
			path, came := filepath.Join(testDir(t), ".vscode"), false
			mkdirat = func(at int, name string, made uint32) error {
				err := makeDir(at, name, made)
				if err == nil {
					came = true
					must(t, os.Remove(path))
					must(t, os.Mkdir(path, 0o700))
					if mode == madeDirMode {
						must(t, os.WriteFile(filepath.Join(path, "x"), nil, 0o600))
					}
					must(t, unix.Chmod(path, mode))
				}
				return err
			}
			p := placeOne(t, path)
			var st unix.Stat_t
			must(t, unix.Lstat(path, &st))
			if _, err := unix.Getxattr(path, markName, nil); err == nil || st.Mode&0o7777 != mode || !came {
				t.Errorf("the host's directory has mode %o and a mark (%v)", st.Mode&0o7777, err)
			}
			must(t, p.Release())
			if !exists(path) {
				t.Error("it was removed")
			}
		})
	}
}
