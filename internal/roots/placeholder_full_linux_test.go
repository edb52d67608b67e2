package roots

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/testenv"
)

// A file system without room for the contents of a placeholder keeps none of it: a file
// of other contents could harm its readers on the host.
func TestPlaceWithoutRoomForTheContents(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "a small file system is mounted")
	}
	for _, flag := range []int{unix.O_TMPFILE, unix.O_TMPFILE &^ unix.O_DIRECTORY} { // the other is refused
		tmpfile = flag
		defer func() { tmpfile = unix.O_TMPFILE }()
		dir := testDir(t)
		if err := unix.Mount("none", dir, "tmpfs", 0, "size=4k"); err != nil {
			testenv.Skip(t, "mount", "cannot mount: "+err.Error())
		}
		defer unix.Unmount(dir, unix.MNT_DETACH)
		path, filling := filepath.Join(dir, "commondir"), filepath.Join(dir, "filling")
		must(t, os.WriteFile(filling, make([]byte, 4096), 0o600))
		r, err := Survey([]string{path}, Writability{})
		must(t, err)
		defer r.Close()
		_, err = Place([]plan.Op{opFor(path)}, r)
		var refusal *plan.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Reason, "make room") {
			t.Errorf("got %v", err)
		}
		if exists(path) {
			b, _ := os.ReadFile(path)
			t.Errorf("left behind with %q", b)
		}
		must(t, os.Remove(filling))
		p, err := Place([]plan.Op{opFor(path)}, r)
		must(t, err)
		if b, err := os.ReadFile(path); err != nil || string(b) != opFor(path).Content {
			t.Errorf("with room: %q, %v", b, err)
		}
		must(t, p.Release())
	}
}

// Only what was made a moment ago by this user gets the mode back that a umask took:
// the name may lead to something else by then.
func TestAdmitTakesOnlyWhatWasMade(t *testing.T) {
	dir := testDir(t)
	parent, err := os.Open(dir)
	must(t, err)
	defer parent.Close()
	file, tree := filepath.Join(dir, ".env"), filepath.Join(dir, "tree")
	for _, c := range []struct {
		name, path string
		make       func() error
		admitted   bool
	}{
		{"a file, whose descriptor is held", file, func() error { return os.WriteFile(file, nil, 0) }, false},
		{"a directory", tree, func() error { return os.Mkdir(tree, 0) }, true},
		{"a directory where a file was made", file, func() error { return os.Mkdir(file, 0) }, false},
		{"a file where a directory was made", tree, func() error { return os.WriteFile(tree, nil, 0) }, false},
		{"a file that has a second name", file, func() error {
			return errors.Join(os.WriteFile(file, nil, 0), os.Link(file, filepath.Join(dir, "second")))
		}, false},
		{"a directory with others in it", tree, func() error {
			return errors.Join(os.MkdirAll(tree+"/in", 0o700), os.Chmod(tree, 0))
		}, false},
		{"a link", file, func() error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "second"), nil, 0), os.Symlink("second", file))
		}, false},
		{"another user's", file, func() error {
			if os.Getuid() != 0 {
				return os.Symlink("none", file) // it cannot be made
			}
			return errors.Join(os.WriteFile(file, nil, 0), os.Chown(file, 77, 77))
		}, false},
	} {
		must(t, c.make())
		before, err := os.Lstat(c.path)
		must(t, err)
		p := &placeholder{op: opFor(c.path), parent: parent, name: filepath.Base(c.path), fd: noFD}
		fd, err := p.admit()
		after, _ := os.Lstat(c.path)
		if c.admitted != (err == nil) || (fd == noFD) == c.admitted {
			t.Errorf("%s: %d, %v", c.name, fd, err)
		}
		if opened := before.Mode() != after.Mode(); opened != c.admitted {
			t.Errorf("%s: its mode was %v and is %v", c.name, before.Mode(), after.Mode())
		}
		closeFD(fd)
		_ = os.Chmod(c.path, 0o700)
		must(t, os.RemoveAll(c.path))
		must(t, os.RemoveAll(filepath.Join(dir, "second")))
	}
	if _, err := (&placeholder{op: opFor(file), parent: parent, name: ".env", fd: noFD}).admit(); !errors.Is(err, unix.ENOENT) {
		t.Errorf("what is gone: %v", err)
	}
}
