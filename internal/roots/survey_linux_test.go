package roots

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/testenv"
)

// tree makes a directory outside the places that are always judged writable.
func testDir(t *testing.T) string {
	t.Helper()
	for _, parent := range []string{os.Getenv("SANDBOXD_TEST_DIR"), "/var/lib", os.Getenv("HOME")} {
		if parent == "" {
			continue
		}
		dir, err := os.MkdirTemp(parent, "sandboxd-roots-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	testenv.Skip(t, "dir-outside-tmp", "no directory outside /tmp that this user may write")
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build makes entries below dir: "d/", "f" or "l -> target".
func build(t *testing.T, dir string, entries ...string) {
	t.Helper()
	for _, e := range entries {
		name, target, link := strings.Cut(e, " -> ")
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case link:
			must(t, os.Symlink(target, path))
		case strings.HasSuffix(e, "/"):
			must(t, os.MkdirAll(path, 0o755))
		default:
			must(t, os.WriteFile(path, []byte(e), 0o644))
		}
	}
}

func TestSurveyDescribesWhatItMeets(t *testing.T) {
	dir := testDir(t)
	build(t, dir, "real/sub/", "file", "abs -> "+dir+"/real", "rel -> abs/sub/../sub", "loop -> loop", "gone -> nowhere/x")
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	in := func(p string) string { return filepath.Join(dir, p) }
	r, err := Survey([]string{in("real/sub"), in("file"), in("rel"), in("loop"), in("gone"), in("fifo"), in("file/below"), in("no/such"), "/dev/null"}, Writability{})
	must(t, err)
	defer r.Close()
	l := r.Layout()
	for path, kind := range map[string]host.Kind{
		"/": host.Dir, dir: host.Dir, in("real"): host.Dir, in("real/sub"): host.Dir, in("file"): host.File, in("fifo"): host.Fifo,
		in("abs"): host.Link, in("rel"): host.Link, in("loop"): host.Link, in("gone"): host.Link, in("nowhere"): host.Missing,
		in("no"): host.Missing, "/dev/null": host.CharDevice,
	} {
		if got := l[path].Kind; got != kind {
			t.Errorf("%s: kind %d, want %d", path, got, kind)
		}
	}
	if res := l.Resolve(in("rel")); res.Path != in("real/sub") || res.Err != nil || len(res.Links) != 2 {
		t.Errorf("rel resolves to %+v", res)
	}
	if res := l.Resolve(in("loop")); res.Err == nil {
		t.Errorf("a loop resolves to %+v", res)
	}
	if res := l.Resolve(in("file/below")); res.Err == nil {
		t.Errorf("below a file: %+v", res)
	}
	if res := l.Resolve(in("gone")); res.Missing != in("nowhere") {
		t.Errorf("dangling: %+v", res)
	}
	var st unix.Stat_t
	must(t, unix.Lstat(in("real/sub"), &st))
	if id := l[in("real/sub")].ID; id != (host.ID{Dev: st.Dev, Ino: st.Ino}) {
		t.Errorf("id %v, lstat says %v/%v", id, st.Dev, st.Ino)
	}
	f, err := r.Dup(in("real/sub"))
	must(t, err)
	defer f.Close()
	var fst unix.Stat_t
	must(t, unix.Fstat(int(f.Fd()), &fst))
	if fst.Ino != st.Ino {
		t.Errorf("the duplicate is another inode")
	}
	if flags, _ := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0); flags&unix.FD_CLOEXEC == 0 {
		t.Error("the duplicate would be inherited")
	}
	if _, err := r.Dup(in("no")); err == nil {
		t.Error("a missing path gave a descriptor")
	}
}
