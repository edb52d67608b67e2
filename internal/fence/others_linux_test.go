package fence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// A directory that its owner alone can write is nothing to grant to another user's
// command, root's included; one that everybody can write is.
func TestAnothersCache(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "a directory of another user's is made")
	}
	top := place(t)
	dirs(t, top, "theirs", "open")
	for _, dir := range []string{"theirs", "open"} {
		if err := os.Chown(filepath.Join(top, dir), 77, 77); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(top, "open"), 0o777); err != nil {
		t.Fatal(err)
	}
	r, err := Fence(input(top, "UV_CACHE_DIR="+top+"/theirs", "PIP_CACHE_DIR="+top+"/open"))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Policy.WritableRoots; !slices.Contains(got, top+"/open") || slices.Contains(got, top+"/theirs") {
		t.Errorf("writable: %q", got)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "belongs to uid 77") {
		t.Errorf("notes: %q", notes)
	}
}

// What of the repositories beside the workspace's own is not guarded is said.
func TestOtherRepositoriesAreBounded(t *testing.T) {
	top := place(t)
	repository := func(rel string) {
		dirs(t, top, rel+"/.git/objects", rel+"/.git/refs", rel+"/.git/hooks")
		if err := os.WriteFile(filepath.Join(top, rel, ".git/HEAD"), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	guarded := func(r Result) (n int) {
		for _, g := range r.Guards {
			if filepath.Base(g.Path) == "hooks" {
				n++
			}
		}
		return n
	}
	repository("ws")
	for n := range maxOthers {
		repository(fmt.Sprintf("ws/r%03d", n))
	}
	r, err := Fence(input(top))
	if err != nil || len(r.Notes) > 0 || guarded(r) != 1+maxOthers {
		t.Errorf("%d guarded, %q, %v", guarded(r), r.Notes, err)
	}
	repository(fmt.Sprintf("ws/r%03d", maxOthers))
	want := fmt.Sprintf("guard: %d repositories lie in what the command may write, and %d of them are guarded; name a narrower workspace, or protect %q", maxOthers+1, maxOthers, fmt.Sprintf("%s/ws/r%03d/.git", top, maxOthers))
	if r, err = Fence(input(top)); err != nil || guarded(r) != 1+maxOthers || !slices.Equal(r.Notes, []string{want}) {
		t.Errorf("%d guarded, %q, %v", guarded(r), r.Notes, err)
	}
	if err := os.RemoveAll(filepath.Join(top, "ws")); err != nil {
		t.Fatal(err)
	}
	repository("ws")
	repository("real")
	dirs(t, top, "ws/linked")
	link(t, filepath.Join(top, "real/.git"), filepath.Join(top, "ws/linked/.git"))
	if r, err = Fence(input(top)); err != nil || guarded(r) != 1 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "is a symbolic link, which a command could replace") {
		t.Errorf("%d guarded, %q, %v", guarded(r), r.Notes, err)
	}
}
