package fence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A program that a command puts before another one of the caller's PATH is said; what
// was there before, comes later, or hides nothing is not.
func TestProgramsBeforeOthers(t *testing.T) {
	top := place(t)
	dirs(t, top, "ws/venv/bin", "ws/late", "host", "other")
	program := func(rel string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(top, rel), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	program("host/ls", 0o755)
	program("host/git", 0o755)
	program("host/data", 0o644)
	program("other/make", 0o755)
	program("ws/venv/bin/git", 0o755)
	path := strings.Join([]string{top + "/ws/venv/bin", top + "/host", "ws/late:", top + "/other", "/usr/bin"}, ":")
	r, err := Workspace(with(input(top, "PATH="+path), func(in *Input) { in.Guard = true }))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Changes(); len(got) != 0 {
		t.Errorf("before: %q", got)
	}
	for _, name := range []string{"ls", "git", "new", "data"} {
		program("ws/venv/bin/"+name, 0o755)
	}
	program("ws/venv/bin/make", 0o644) // not executable
	program("ws/late/ls", 0o755)
	program("ws/make", 0o755) // the empty entry is where its user stands
	want := []string{top + "/ws/make", top + "/ws/venv/bin/ls"}
	got := r.Changes()
	if len(got) != len(want) || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want[0]+"\"") }) || !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want[1]+"\"") }) {
		t.Errorf("%q, want of %q", got, want)
	}
}

// A directory with more names than are listed, or one that this user may not list, is
// looked at for the names of the programs that it could hide; where those cannot be
// listed either, that is said.
func TestProgramsAmongVeryMany(t *testing.T) {
	top := place(t)
	dirs(t, top, "ws/venv/bin", "host")
	program := func(rel string) {
		if err := os.WriteFile(filepath.Join(top, rel), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program("host/ls")
	program("host/make")
	program("ws/venv/bin/make")
	r, err := Workspace(with(input(top, "PATH="+top+"/ws/venv/bin:"+top+"/host"), func(in *Input) { in.Guard = true }))
	if err != nil {
		t.Fatal(err)
	}
	for n := range maxPrograms {
		if err := os.Symlink("x", fmt.Sprintf("%s/ws/venv/bin/%d", top, n)); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Changes(); len(got) != 0 {
		t.Errorf("before: %q", got)
	}
	program("ws/venv/bin/ls")
	want := fmt.Sprintf("the command made %q, which comes before %q on your PATH", top+"/ws/venv/bin/ls", top+"/host/ls")
	if got := r.Changes(); !slices.Equal(got, []string{want}) {
		t.Errorf("%q, want %q", got, want)
	}
	if os.Getuid() == 0 { // root lists all
		return
	}
	for _, dir := range []string{"ws/venv/bin", "host"} {
		at := filepath.Join(top, dir)
		if err := os.Chmod(at, 0o311); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(at, 0o755) })
		got := strings.Join(r.Changes(), "\n")
		if all := dir == "ws/venv/bin"; strings.Contains(got, want) != all || strings.Contains(got, "the programs in \""+top+"/host\", which is on your PATH, could not be looked at") == all {
			t.Errorf("%s: %q", dir, got)
		}
	}
}

// The program that makes the jail is not the command's to replace.
func TestOwnProgramIsGuarded(t *testing.T) {
	top := place(t)
	for _, rel := range []string{"ws/tool", "home/tool"} {
		if err := os.WriteFile(filepath.Join(top, rel), nil, 0o755); err != nil {
			t.Fatal(err)
		}
		r, err := Workspace(with(input(top), func(in *Input) { in.Guard, in.Self = true, top+"/"+rel }))
		if err != nil {
			t.Fatal(err)
		}
		guarded := slices.ContainsFunc(r.Guards, func(g Guard) bool { return g.Path == top+"/"+rel })
		if guarded != strings.HasPrefix(rel, "ws/") {
			t.Errorf("%s: %v", rel, guarded)
		}
	}
}

func with(in Input, change func(*Input)) Input {
	change(&in)
	return in
}
