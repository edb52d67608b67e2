package roots

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
)

// TestHalfMade: what a helper made that was killed before it had finished is finished
// by the next one, and goes with it.
func TestHalfMade(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "plain/", "setgid/")
	must(t, os.Chmod(filepath.Join(dir, "setgid"), 0o755|os.ModeSetgid))
	for _, below := range []string{"plain", "setgid"} {
		for _, tc := range []struct{ name, text, want string }{
			{name: ".vscode"},
			{name: ".env"},
			{name: "commondir", want: "."},
			{name: "commondir", text: ".", want: "."},
		} {
			path := filepath.Join(dir, below, tc.name)
			file := tc.name != ".vscode"
			if file {
				must(t, os.WriteFile(path, []byte(tc.text), 0o600))
				must(t, unix.Chmod(path, madeFileMode))
			} else {
				must(t, unix.Mkdir(path, madeDirMode))
			}
			p := placeOne(t, path)
			info, err := os.Lstat(path)
			must(t, err)
			if info.Mode()&os.ModeSticky != 0 || !marked(p.list[0].fd) {
				t.Errorf("%s was not finished: %v", path, info.Mode())
			}
			if text, err := os.ReadFile(path); file && (err != nil || string(text) != tc.want) {
				t.Errorf("%s holds %q, %v", path, text, err)
			}
			must(t, p.Release())
			if exists(path) {
				t.Errorf("%s is left", path)
			}
		}
	}
	// What only looks like one is nobody's to finish or to remove.
	path := filepath.Join(dir, "plain/commondir")
	must(t, os.WriteFile(path, []byte("../real"), 0o600))
	must(t, unix.Chmod(path, madeFileMode))
	must(t, placeOne(t, path).Release())
	if text, err := os.ReadFile(path); err != nil || string(text) != "../real" {
		t.Errorf("somebody's file became %q, %v", text, err)
	}
	path = filepath.Join(dir, "second")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, unix.Chmod(path, madeFileMode))
	must(t, os.Link(path, filepath.Join(dir, "commondir")))
	p, err := func() (*Placeholders, error) {
		r, err := Survey([]string{filepath.Join(dir, "commondir")}, Writability{})
		must(t, err)
		defer r.Close()
		return Place([]plan.Op{opFor(filepath.Join(dir, "commondir"))}, r)
	}()
	if err == nil {
		must(t, p.Release())
	}
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 || !exists(filepath.Join(dir, "commondir")) {
		t.Errorf("the second name was written or removed: %q, %v", text, err)
	}
}

// TestFileWithoutTmpfile: a file system without nameless files gives the same result.
func TestFileWithoutTmpfile(t *testing.T) {
	tmpfile = unix.O_CREAT | unix.O_DIRECTORY // EINVAL or EISDIR
	defer func() { tmpfile = unix.O_TMPFILE }()
	dir := testDir(t)
	for name, want := range map[string]struct {
		text string
		mode os.FileMode
	}{"commondir": {".", fileMode}, ".env": {"", emptyMode}} {
		path := filepath.Join(dir, name)
		p := placeOne(t, path)
		text, err := os.ReadFile(path)
		must(t, err)
		info, err := os.Lstat(path)
		must(t, err)
		if string(text) != want.text || info.Mode() != want.mode || !marked(p.list[0].fd) {
			t.Errorf("%s: %q %v", name, text, info.Mode())
		}
		must(t, p.Release())
		if exists(path) {
			t.Errorf("%s is left", name)
		}
	}
}

// TestNobodyReadsHalfAFile: a reader on the host sees nothing there, or all of it.
func TestNobodyReadsHalfAFile(t *testing.T) {
	path := filepath.Join(testDir(t), "commondir")
	done, seen := make(chan struct{}), make(chan map[string]int)
	go func() {
		got := map[string]int{}
		for {
			select {
			case <-done:
				seen <- got
				return
			default:
				if text, err := os.ReadFile(path); err == nil {
					got[string(text)]++
				}
			}
		}
	}()
	for range 300 {
		p := placeOne(t, path)
		time.Sleep(50 * time.Microsecond)
		must(t, p.Release())
	}
	close(done)
	if got := <-seen; got["."] == 0 || len(got) > 1 {
		t.Errorf("a reader saw %v", got)
	}
}

// TestPlaceMoved: what the host took away between the look and the mount point is for a
// fresh look, and no fault of the policy.
func TestPlaceMoved(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"its directory is gone": os.RemoveAll,
		"a file came":           func(dir string) error { return os.WriteFile(filepath.Join(dir, ".vscode"), nil, 0o600) },
		"a link came":           func(dir string) error { return os.Symlink("x", filepath.Join(dir, ".vscode")) },
		"a socket came":         func(dir string) error { return unix.Mknod(filepath.Join(dir, ".env"), unix.S_IFSOCK|0o600, 0) },
	} {
		dir := filepath.Join(testDir(t), "d")
		must(t, os.Mkdir(dir, 0o700))
		path := filepath.Join(dir, ".vscode")
		if name == "a socket came" {
			path = filepath.Join(dir, ".env")
		}
		r := surveyed(t, path)
		must(t, change(dir))
		_, err := Place([]plan.Op{opFor(path)}, r)
		var refusal *plan.Refusal
		if !errors.Is(err, ErrMoved) || !errors.As(err, &refusal) || refusal.Path != path {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := filepath.Join(testDir(t), strings.Repeat("x", 300))
	_, err := Place([]plan.Op{opFor(long)}, surveyed(t, long))
	if err == nil || errors.Is(err, ErrMoved) {
		t.Errorf("nothing moved: %v", err)
	}
}

func surveyed(t *testing.T, path string) *Reached {
	r, err := Survey([]string{path}, Writability{Narrow: []string{path}})
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}
