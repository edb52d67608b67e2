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

// Who opens /dev/null as nothing else than an output has not lost it.
func TestClosed(t *testing.T) {
	for name, flags := range map[string]int{"for writing": os.O_WRONLY, "for both": os.O_RDWR} {
		f, err := os.OpenFile(os.DevNull, flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := Closed(f); got != (flags == os.O_RDWR) {
			t.Errorf("%s: %t", name, got)
		}
		f.Close()
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if Closed(f) {
		t.Error("an ordinary file is one that was closed")
	}
	f.Close()
	if !Closed(f) {
		t.Error("a closed descriptor is not")
	}
}
