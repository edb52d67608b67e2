package repos

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What cannot be listed is looked at by name, what cannot be searched is named; what is
// not there is neither. Root lists and searches everything.
func TestShutDirectories(t *testing.T) {
	top := t.TempDir()
	shell(t, top, "git init -q --bare bare; git init -q named/in; git init -q closed/in; git init -q shut/in; mkdir open; touch file; ln -s loop loop")
	before := Look(top, Search)
	for name, mode := range map[string]os.FileMode{"bare": 0o311, "named": 0o311, "closed": 0o600, "shut": 0} {
		at := filepath.Join(top, name)
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(at, 0o755) })
	}
	found, shut, complete := Find(top, Search)
	if !complete || !slices.Contains(found, Repo{filepath.Join(top, "bare"), filepath.Join(top, "bare"), Bare}) {
		t.Errorf("%v, %+v", complete, found)
	}
	said := strings.Join(Changes(before, before.Again()), "\n")
	root := os.Getuid() == 0
	for _, name := range []string{"bare", "named", "closed", "shut", "open"} {
		at := filepath.Join(top, name)
		want := !root && name != "open"
		if got := slices.ContainsFunc(shut, func(s Shut) bool { return s.Dir == at && errors.Is(s.Err, fs.ErrPermission) }); got != want {
			t.Errorf("%s: %v, %v", name, got, shut)
		}
		if got := strings.Contains(said, at+`" could not be looked at`); got != want {
			t.Errorf("%s: %v, %q", name, got, said)
		}
	}
	for _, pattern := range []string{"*/in/.git", "named/*/.git", "*/*"} {
		if _, shut := (Places{top, pattern}).Matches(); (len(shut) == 0) != root {
			t.Errorf("%s: %v", pattern, shut)
		}
	}
	for _, dir := range []string{"none", "file", "loop", "file/none", "none/*"} {
		if paths, shut := (Places{filepath.Join(top, dir), "*"}).Matches(); paths != nil || shut != nil {
			t.Errorf("%s: %q, %v", dir, paths, shut)
		}
	}
}

// What was so before is said only of what a command could have changed.
func TestShutBefore(t *testing.T) {
	top := t.TempDir()
	for _, c := range []struct {
		writable, kept []string
		said           bool
	}{
		{[]string{top}, []string{"/"}, true},
		{[]string{top}, []string{top + "/d"}, false},
		{[]string{top}, []string{top + "/d/e"}, false},
		{[]string{top}, []string{top + "/d/e/f"}, true},
		{[]string{"/"}, []string{top}, true},
		{[]string{"/elsewhere"}, nil, false},
		{nil, nil, false},
	} {
		shut := []Shut{{top + "/d/e", ErrMore}}
		before, after := Look(top, 0), Look(top, 0)
		before.note(shut)
		after.note(shut)
		before.Kept(c.writable, c.kept)
		if got := Changes(before, after); (len(got) == 1) != c.said || len(got) > 1 {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
