//go:build unix

package selftest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"sandboxd/internal/testenv"
)

func names(t *testing.T, dir string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, e := range entries {
		found[e.Name()] = true
	}
	return found
}

// A sweep takes what nobody holds, whatever its age, and nothing that is another's.
func TestSweep(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	in := func(name string) string { return filepath.Join(parent, prefix+name) }
	living, release, err := claim(parent)
	if err != nil {
		t.Fatal(err)
	}
	write := func(path string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(living, "f"))
	write(in("dead/a/b"))
	write(in("file"))
	write(in("foreign/a"))
	write(filepath.Join(parent, "unrelated", "a"))
	write(filepath.Join(elsewhere, "a"))
	if err := os.Symlink(elsewhere, in("link")); err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	if root { // as an ordinary user there is no other one's to try it on
		if err := os.Chown(in("foreign"), 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	sweep(parent)
	found := names(t, parent)
	for name, stays := range map[string]bool{
		filepath.Base(living): true, "unrelated": true, prefix + "link": true,
		prefix + "dead": false, prefix + "file": false, prefix + "foreign": root,
	} {
		if found[name] != stays {
			t.Errorf("%s: there %t, want %t", name, found[name], stays)
		}
	}
	if len(names(t, elsewhere)) != 1 {
		t.Error("a link was followed")
	}
	release()
	if names(t, parent)[filepath.Base(living)] {
		t.Error("a fixture stays after its release")
	}
}

// Fixtures are made while others sweep without a pause: each has its own, whole.
func TestSweepMeetsClaim(t *testing.T) {
	parent := t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		for ctx.Err() == nil {
			sweep(parent)
		}
	}()
	for range 200 {
		dir, release, err := claim(parent)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		testenv.Pause()
		if _, err := os.Stat(filepath.Join(dir, "f")); err != nil {
			t.Fatal(err)
		}
		release()
	}
	stop()
	<-swept
}

// A closed standard output is told from one that is discarded on purpose.
func TestClosed(t *testing.T) {
	open := func(path string, flags int) *os.File {
		f, err := os.OpenFile(path, flags, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	file := open(filepath.Join(t.TempDir(), "f"), os.O_CREATE|os.O_RDWR)
	replaced, discarded := open(os.DevNull, os.O_RDWR), open(os.DevNull, os.O_WRONLY)
	for _, c := range []struct {
		name           string
		stdout, stderr *os.File
		want           bool
	}{
		{"files", file, file, false}, {"discarded", discarded, file, false}, {"both discarded", discarded, discarded, false},
		{"closed", replaced, file, true}, {"closed, and errors discarded", replaced, discarded, true},
		{"both closed, or discarded as some languages do", replaced, replaced, false}, {"only errors", file, replaced, false},
	} {
		if got := Closed(c.stdout, c.stderr); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
