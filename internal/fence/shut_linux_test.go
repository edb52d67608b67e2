package fence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/fence/repos"
	"sandboxd/internal/testenv"
)

// A directory of worktrees with more entries than are looked at is closed as a whole, and
// that is said; one of a cache is only said.
func TestMoreThanIsLookedAt(t *testing.T) {
	top := place(t)
	vcs := "home/go/pkg/mod/cache/vcs"
	dirs(t, top, "ws/.git/objects", "ws/.git/refs", "ws/.git/hooks", "ws/.git/worktrees/tree", vcs)
	for _, file := range []string{"ws/.git/HEAD", "ws/.git/config", "ws/.git/worktrees/tree/commondir"} {
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	trees := filepath.Join(top, "ws/.git/worktrees")
	guarded := func(r Result, path string) bool {
		return slices.ContainsFunc(r.Guards, func(g Guard) bool { return g.Path == path })
	}
	r, err := Fence(input(top))
	if err != nil || len(r.Notes) != 0 || guarded(r, trees) || slices.Contains(r.Policy.ReadableRoots, trees) || !guarded(r, trees+"/tree/commondir") {
		t.Errorf("one work tree: %+v, %q, %v", r.Guards, r.Notes, err)
	}
	const many = 1<<14 + 1 // repos.maxMatches, and one
	for _, dir := range []string{trees, filepath.Join(top, vcs)} {
		for n := range many {
			if err := os.Symlink("x", fmt.Sprintf("%s/%d", dir, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	said := r.Changes()
	if r, err = Fence(input(top)); err != nil || !guarded(r, trees) || !slices.Contains(r.Policy.ReadableRoots, trees) {
		t.Errorf("%d of them: %d guards, %v", many, len(r.Guards), err)
	}
	notes := strings.Join(r.Notes, "\n")
	if !strings.Contains(notes, fmt.Sprintf("%q could not be looked at (it has more entries than are looked at), so all of it is read-only", trees)) ||
		!strings.Contains(notes, fmt.Sprintf("the cache %q has more entries than are looked at", filepath.Join(top, vcs))) {
		t.Errorf("notes: %q", r.Notes)
	}
	for _, dir := range []string{trees, filepath.Join(top, vcs)} {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, fmt.Sprintf("%q could not be looked at whole", dir)) }) {
			t.Errorf("%s is not among %q", dir, said)
		}
	}
}

// A hook that is a link is found where hooks cannot be listed, and a fifo in the place of
// a directory holds nothing up.
func TestLinksOfHooks(t *testing.T) {
	top := place(t)
	dirs(t, top, "hooks")
	hooks := filepath.Join(top, "hooks")
	link(t, "../tools/check", filepath.Join(hooks, "pre-commit"))
	link(t, "../tools/other", filepath.Join(hooks, "no-hook"))
	check, other := filepath.Join(top, "tools/check"), filepath.Join(top, "tools/other")
	if got, _ := links(hooks); !slices.Equal(got, []string{other, check}) {
		t.Errorf("%q", got)
	}
	if os.Getuid() != 0 { // root lists all
		if err := os.Chmod(hooks, 0o311); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(hooks, 0o755) })
		if got, _ := links(hooks); !slices.Equal(got, []string{check}) {
			t.Errorf("not to be listed: %q", got)
		}
	}
	at := filepath.Join(top, "fifo")
	if err := syscall.Mkfifo(at, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, _ := links(at); got != nil {
		t.Errorf("a fifo: %q", got)
	}
	if got, err := programs(at, 1); got != nil || err != nil {
		t.Errorf("a fifo: %q, %v", got, err)
	}
}

// The git directory of a submodule that lies deeper than is looked is closed with what is
// around it, where the user opened the directory of all of them; a nearer one is guarded.
func TestModulesTooDeep(t *testing.T) {
	top := place(t)
	near, deep := "ws/.git/modules/near", "ws/.git/modules/a/b/c/d/e/f/g/h/i/j/deep"
	dirs(t, top, "ws/.git/objects", "ws/.git/refs", near+"/hooks", deep+"/hooks", "ws/.git/modules/k/l/m/n")
	for _, file := range []string{"ws/.git/HEAD", "ws/.git/config", near + "/HEAD", near + "/config", deep + "/HEAD", deep + "/config"} {
		if err := os.WriteFile(filepath.Join(top, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := input(top)
	modules := filepath.Join(top, "ws/.git/modules")
	in.Open, in.Write = []string{modules}, []string{modules}
	r, err := Fence(in)
	if err != nil {
		t.Fatal(err)
	}
	i := filepath.Join(modules, "a/b/c/d/e/f/g/h/i")
	for _, path := range []string{filepath.Join(top, near, "config"), filepath.Join(top, near, "hooks"), i} {
		if !slices.ContainsFunc(r.Guards, func(g Guard) bool { return g.Path == path }) {
			t.Errorf("%s is not guarded: %+v", path, r.Guards)
		}
	}
	if !slices.Contains(r.Policy.ReadableRoots, i) || slices.Contains(r.Policy.ReadableRoots, modules) {
		t.Errorf("read-only: %q", r.Policy.ReadableRoots)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], fmt.Sprintf("%q could not be looked at", i)) || strings.Contains(r.Notes[0], "more such") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// What a command's own repository makes git read any number of times is read once, and
// one that names more than is looked at is closed as a whole.
func TestNamesAreBounded(t *testing.T) {
	top := place(t)
	in := input(top, "PATH="+os.Getenv("PATH"))
	if gitProgram(os.Getenv("PATH"), nil) == "" {
		testenv.Skip(t, "tool:git", "there is none")
	}
	dirs(t, top, "ws/in/.git/objects", "ws/in/.git/refs", "ws/in/h")
	nested := filepath.Join(top, "ws/in")
	for n := range 3 * maxHooks {
		link(t, "x", fmt.Sprintf("%s/h/%d", nested, n))
	}
	link(t, "../../tools/check", nested+"/h/pre-commit")
	for n := range 300 {
		link(t, "h", fmt.Sprintf("%s/h%d", nested, n))
	}
	put := func(name string, lines ...string) {
		if err := os.WriteFile(filepath.Join(nested, name), []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(".git/HEAD", "ref: refs/heads/main")
	put("plain", strings.Repeat("# nothing\n", 1<<16))
	repeat := func(n int, line func(n int) string) (out []string) {
		for i := range n {
			out = append(out, "[core]", line(i))
		}
		return out
	}
	for what, c := range map[string]struct {
		config []string
		closed bool
	}{
		"one place again and again":        {repeat(20_000, func(int) string { return "hookspath = h" }), false},
		"one file again and again":         {append([]string{"[include]"}, slices.Repeat([]string{"path = ../plain"}, 5_000)...), false},
		"more directories than are looked": {repeat(300, func(n int) string { return fmt.Sprintf("hookspath = h%d", n) }), true},
		"more text than is looked at":      {append(repeat(1, func(int) string { return "hookspath = h" }), strings.Repeat("#", maxConfig)), true},
	} {
		put(".git/config", c.config...)
		r, err := Fence(in)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if closed := slices.Contains(r.Policy.ReadableRoots, nested); closed != c.closed || closed != strings.Contains(strings.Join(r.Notes, "\n"), nested) {
			t.Errorf("%s: closed %v, %q", what, closed, r.Notes)
		}
	}
}

func TestModulesAreBounded(t *testing.T) {
	top := place(t)
	for _, name := range []string{"a", "b", "c/d"} {
		dirs(t, top, "m/"+name)
		if err := os.WriteFile(filepath.Join(top, "m", name, "HEAD"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for most, want := range map[int]int{4: 3, 3: 2, 2: 0} {
		found, shut := modules(top+"/m", 0, &most)
		if len(found) != want || (len(shut) == 0) != (want == 3) || len(shut) > 0 && !errors.Is(shut[0].Err, repos.ErrMore) {
			t.Errorf("%q, %v; want %d", found, shut, want)
		}
	}
}

// git takes "~" and "~NAME" in a path.
func TestExpandHome(t *testing.T) {
	for path, want := range map[string]string{"~/a/b": "/h/a/b", "~me/a": "/h/a", "a/~b": "/d/a/~b", "/x/~/y": "/x/~/y", "~": "/d/~"} {
		if got := expand(path, "/d", "/h"); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// Very many linked work trees, each with a configuration of its own that names a program,
// are no reason to run nothing; how often git is started for them is bounded all the same.
func TestConfigurationsAreBounded(t *testing.T) {
	testenv.Tool(t, "git")
	top := place(t)
	var files []string
	for n := range 40 {
		file := filepath.Join(top, fmt.Sprint(n))
		if err := os.WriteFile(file, []byte("[core]\n\teditor = x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	g := git(gitProgram(os.Getenv("PATH"), nil))
	if list, failed := g.settings(files, "", newBounds()); len(list) != 40 || len(failed) != 0 {
		t.Errorf("%d settings, %v", len(list), failed)
	}
	most := newBounds()
	most.files = 39
	if list, failed := g.settings(files, "", most); len(list) != 39 || len(failed) != 1 || failed[0].path != files[39] || !errors.Is(failed[0].err, repos.ErrMore) {
		t.Errorf("%d settings, %v", len(list), failed)
	}
}
