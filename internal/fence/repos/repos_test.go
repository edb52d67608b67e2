package repos

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// shell runs a script in a directory, with an identity for git.
func shell(t *testing.T, dir, script string) {
	t.Helper()
	testenv.Tool(t, "git")
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_ALLOW_PROTOCOL=file")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// inner makes a repository "deep/in" with an entry of its own in the index of the
// one around it, which has files before and after that one.
const inner = `git init -q $FORMAT . && mkdir -p deep a && echo a >a/file && echo z >zz && git init -q $FORMAT deep/in &&
cd deep/in && echo x >x && git add x && git commit -qm x && cd ../.. && git add . 2>/dev/null && git commit -qm all
`

func TestGitlinksOfRealIndexes(t *testing.T) {
	for name, change := range map[string]string{
		"version 2":         "git update-index --index-version 2",
		"version 3":         "git update-index --skip-worktree a/file",
		"version 4":         "git update-index --index-version 4",
		"split":             "git update-index --split-index; echo b >b; git add b",
		"many of one stem":  "for i in 1 22 333 4444 55555; do echo $i >a/file$i; done; git add a; git update-index --index-version 4",
		"with an extension": "git update-index --untracked-cache; git status >/dev/null",
		"another hash":      "FORMAT=--object-format=sha256",
	} {
		dir := t.TempDir()
		if before, ok := strings.CutPrefix(change, "FORMAT="); ok {
			shell(t, dir, "FORMAT="+before+"\n"+inner)
		} else {
			shell(t, dir, inner+change)
		}
		if got, ok := Gitlinks(filepath.Join(dir, ".git")); !ok || !slices.Equal(got, []string{"deep/in"}) {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
		at := filepath.Join(dir, ".git/index")
		b, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 11, 30, len(b) - 1} { // of all, some entry is cut
			if err := os.WriteFile(at, b[:n], 0o644); err != nil {
				t.Fatal(err)
			}
			if got, ok := Gitlinks(filepath.Join(dir, ".git")); ok {
				t.Errorf("%s, %d bytes: %q", name, n, got)
			}
		}
	}
	dir := t.TempDir()
	if got, ok := Gitlinks(dir); !ok || got != nil {
		t.Errorf("no index: %q, %v", got, ok)
	}
	shell(t, dir, "mkfifo index")
	if _, ok := Gitlinks(dir); ok {
		t.Error("a fifo is taken for an index")
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"+strings.Repeat("a", 80)), 20)
	f.Fuzz(func(t *testing.T, b []byte, hash int) {
		if hash != 32 {
			hash = 20
		}
		if got, ok := parseIndex(b, hash); ok && len(b) < 12+hash {
			t.Errorf("%q is an index: %+v", b, got)
		}
	})
}

func TestFind(t *testing.T) {
	top := t.TempDir()
	shell(t, top, `git init -q . && git init -q a/b && git init -q --bare c/d.git && mkdir -p e f g h/objects h/refs .git/modules/m/.git a/b/.git/x/.git
echo gitdir: x >e/.git; ln -s ../a/b/.git f/.git; echo x >g/HEAD; echo x >g/commondir; echo x >h/HEAD.lock; ln -s a i`)
	want := []Repo{
		{top, top + "/.git", Dir}, {top + "/e", top + "/e/.git", File}, {top + "/f", top + "/f/.git", Link},
		{top + "/g", top + "/g", Bare}, {top + "/a/b", top + "/a/b/.git", Dir}, {top + "/c/d.git", top + "/c/d.git", Bare},
	}
	found, shut, complete := Find(top, Search)
	if !complete || shut != nil || !slices.Equal(found, want) {
		t.Errorf("%v: %+v", complete, found)
	}
	if found, shut, complete = Find(top, 1); complete || shut != nil || !slices.Equal(found, want[:1]) {
		t.Errorf("one directory: %v: %+v", complete, found)
	}
}

// Each line is what a command does in a repository that has another one inside, and
// what has to be said of it; most is how much is searched.
func TestChanges(t *testing.T) {
	template := t.TempDir()
	shell(t, template, inner+"git clone -q . deep/gone && git add deep/gone 2>/dev/null && git commit -qm gone && rm -rf deep/gone && mkdir .git/rebase-merge && printf 'exec first\\npick x\\nexec second\\n' >.git/rebase-merge/git-rebase-todo")
	for _, c := range []struct {
		script, want string
		alone        bool // seen by a look at the repository alone, too
	}{
		{"echo x >x; git add x; git commit -qm x; mkdir -p .git/rebase-merge; echo pick >.git/rebase-merge/git-rebase-todo", "", true},
		{"git clone -q . made", "made the repository in", false},
		{"git clone -q . new; git add new 2>/dev/null", "and `git status` in", true},
		{"git clone -q . deep/gone", "and `git status` in", true},
		{"git clone -q . deep/gone; git update-index --split-index", "and `git status` in", true},
		{"mkdir x; echo gitdir: ../deep >x/.git", "made the repository in", false},
		{"git init -q --bare y", "made a bare repository of", false},
		{"mkdir objects refs; echo x >HEAD", "made a bare repository of", true},
		{"echo x >HEAD; echo ../evil >commondir", "made a bare repository of", true},
		{"rm .git/HEAD", ".git/HEAD", true},
		{"rm deep/in/.git/HEAD", "deep/in/.git/HEAD", true},
		{"echo 'exec evil' >>.git/rebase-merge/git-rebase-todo", "the rebase in progress", true},
		{"printf ' \\tx\\tevil' >.git/rebase-merge/git-rebase-todo", "the rebase in progress", true},
		{"rm .git/rebase-merge/git-rebase-todo; ln -s x .git/rebase-merge/git-rebase-todo", "the rebase in progress", true},
		{"printf 'exec second\\n' >.git/rebase-merge/git-rebase-todo", "", true}, // the user's own, going on
		{"git worktree add -q --detach ../$$; mkdir .git/worktrees/$$/rebase-merge; echo x evil >.git/worktrees/$$/rebase-merge/git-rebase-todo", "the rebase in progress", true},
		{"echo x >.git/index", "cannot be read", true},
		{"echo ../x >.git/rebase-merge/strategy", "as its merge strategy", true},
		{"echo ort >.git/rebase-merge/strategy", "", true},
		{"mkdir .git/sequencer; printf '[options]\\n\\tStrategy = ../x\\n' >.git/sequencer/opts", "as its merge strategy", true},
		{"mkdir .git/sequencer; printf '[options]\\n\\tstrategy-option = ours\\n' >.git/sequencer/opts", "", true},
		{"git worktree add -q --detach ../$$; mkdir .git/worktrees/$$/rebase-merge; echo x >.git/worktrees/$$/rebase-merge/strategy", "as its merge strategy", true},
		{"git worktree add -q --detach ../$$; echo ../../../evil >.git/worktrees/$$/commondir", "other hooks", true},
		{"git worktree add -q --detach ../$$; echo . >.git/worktrees/$$/commondir", "other hooks", true},
		{"git worktree add -q --detach ../$$; echo '[core]' >.git/worktrees/$$/config.worktree", "another configuration", true},
		{"git worktree add -q --detach ../$$; : >.git/worktrees/$$/config.worktree; mkdir x; git worktree add -q --detach x/y", "made the repository in", false},
		{"git worktree add -q --detach ../$$; : >.git/worktrees/$$/config.worktree", "", true},
		{"mkdir -p .git/remotes; echo URL: ../evil >.git/remotes/origin", "whose hooks then run", true},
		{"mkdir -p .git/branches; echo ../evil >.git/branches/origin", "whose hooks then run", true},
		{"mkdir -p .git/remotes; ln -s ../x .git/remotes/origin", "whose hooks then run", true},
	} {
		for _, most := range []int{0, Search} {
			dir := t.TempDir()
			shell(t, dir, "cp -a "+template+"/. .")
			before := Look(dir, most)
			shell(t, dir, c.script)
			got := Changes(before, Look(dir, most))
			want := c.want
			if most == 0 && !c.alone {
				want = ""
			}
			if (want == "") != (len(got) == 0) || len(got) > 1 || want != "" && !strings.Contains(got[0], want) {
				t.Errorf("%s, %d searched: %q, want %q", c.script, most, got, want)
			}
		}
	}
}

func TestChangesAreBounded(t *testing.T) {
	dir := t.TempDir()
	before := Look(dir, 10)
	shell(t, dir, "for i in 1 2 3 4 5 6 7; do git init -q $i; done; mkdir -p a b c d; mkdir -p /"+dir+"/cache/x")
	got := Changes(before, Look(dir, 10, Places{dir, "cache/*"}))
	if len(got) != maxChanges+3 || !strings.HasPrefix(got[maxChanges], "and 2 more") || !strings.Contains(got[maxChanges+1], "cache/x") || !strings.Contains(got[maxChanges+2], "only 10 directories") {
		t.Errorf("%q", got)
	}
}

// With the root / the directories of processes would use up the search.
func TestKernelsFileSystemsAreNotSearched(t *testing.T) {
	names := func() []string { return []string{"dev", "etc", "proc", "srv", "sys"} }
	if got := searched("/", names()); !slices.Equal(got, []string{"etc", "srv"}) {
		t.Errorf("below /: %q", got)
	}
	if got := searched("/srv", names()); !slices.Equal(got, names()) {
		t.Errorf("below another directory: %q", got)
	}
}
