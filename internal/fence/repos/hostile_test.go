package repos

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// indexOf writes an index of entries for other repositories. In version 4 every path
// but the first is the one before with nothing cut and the given end.
func indexOf(version uint32, paths []string) []byte {
	b := binary.BigEndian.AppendUint32([]byte("DIRC"), version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(paths)))
	for _, path := range paths {
		entry := make([]byte, entryFixed+20+2)
		binary.BigEndian.PutUint32(entry[entryMode:], gitlink)
		if version == 4 {
			entry = append(append(entry, 0), path...)
			entry = append(entry, 0)
		} else {
			entry = append(entry, path...)
			entry = append(entry, make([]byte, 8-len(entry)%8)...)
		}
		b = append(b, entry...)
	}
	return append(b, make([]byte, 20)...)
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// An index is a command's to write: what it says takes no more than it is.
func TestIndexBuysNoMemory(t *testing.T) {
	long := indexOf(4, append([]string{strings.Repeat("a/", 1<<19)}, make([]string, 500)...))
	var f indexFile
	var ok bool
	if n := allocated(func() { f, ok = parseIndex(long, 20) }); n > 16<<20 || ok {
		t.Errorf("%d bytes of an index: %v, %d links, %d bytes allocated", len(long), ok, len(f.links), n)
	}
	if f, ok := parseIndex(indexOf(4, []string{"a", "", "b"}), 20); !ok || !slices.Equal(f.links, []string{"a", "a", "ab"}) {
		t.Errorf("a small one: %v, %q", ok, f.links)
	}
	many := make([]string, maxLinks+1)
	for i := range many {
		many[i] = fmt.Sprintf("sub/%d", i)
	}
	if f, ok := parseIndex(indexOf(2, many), 20); ok || len(f.links) != maxLinks {
		t.Errorf("too many: %v, %d links", ok, len(f.links))
	}
	if f, ok := parseIndex(indexOf(2, many[1:]), 20); !ok || len(f.links) != maxLinks {
		t.Errorf("as many as there may be: %v, %d links", ok, len(f.links))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "index"), indexOf(2, many), 0o644); err != nil {
		t.Fatal(err)
	}
	if paths, ok := Gitlinks(dir); ok || len(paths) != maxLinks {
		t.Errorf("what there was room for is looked at: %v, %d links", ok, len(paths))
	}
}

// A list of 4 MiB costs a command one block of a sparse file.
func TestRebaseListsBuyNoMemory(t *testing.T) {
	top := t.TempDir()
	before := Look(top, 0)
	for i := range 12 {
		dir := filepath.Join(top, fmt.Sprintf(".git/worktrees/%d/rebase-merge", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(dir, "git-rebase-todo")
		if err := os.WriteFile(at, []byte("exec evil "), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(at, maxTodo); err != nil {
			t.Fatal(err)
		}
	}
	s := Look(top, 0)
	kept := 0
	for _, list := range s.execs {
		kept += len(list)
	}
	if len(s.execs) != 12 || kept > maxLists+1<<16 {
		t.Errorf("%d lists, %d bytes of them kept", len(s.execs), kept)
	}
	if got := strings.Join(Changes(before, s), "\n"); strings.Count(got, "the rebase in progress") != maxChanges || !strings.Contains(got, "and 7 more") {
		t.Errorf("%s", got)
	}
}

// Of the small files by which git goes on a digest is kept, and of those with long paths
// not all; that is said.
func TestToldFilesBuyNoMemory(t *testing.T) {
	top := t.TempDir()
	before := Look(top, 0)
	dir := filepath.Join(top, ".git", "remotes")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const many = 50
	for i := range many {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, maxTold), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := Look(top, 0)
	if used := maxNames - s.names; len(s.files) != many || used < many*len(dir) || used > many*(len(dir)+40) {
		t.Errorf("%d files, %d bytes kept", len(s.files), used)
	}
	few := before.Again()
	few.files, few.names = map[string][sha256.Size]byte{}, 1000
	few.add(Repo{top, filepath.Join(top, ".git"), Dir}, false)
	if got := strings.Join(Changes(s, few), "\n"); len(few.files) >= many || !strings.Contains(got, "than are looked at") {
		t.Errorf("%d files: %q", len(few.files), got)
	}
	if err := os.WriteFile(filepath.Join(dir, "7"), make([]byte, maxTold+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := Changes(s, s.Again()); len(got) != 1 || !strings.Contains(got[0], "remotes/7") {
		t.Errorf("%q", got)
	}
}

// Repositories that share one with many worktrees do not multiply what is looked at.
func TestLooksAreBounded(t *testing.T) {
	top := t.TempDir()
	for i := range 20 {
		if err := os.MkdirAll(filepath.Join(top, fmt.Sprintf(".git/worktrees/%d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := Look(top, 0)
	if s.looks != maxLooks-1-2-21-20 { // itself, "remotes" and "branches", "worktrees" and what is in it, each of these
		t.Errorf("%d looks for 20 worktrees", maxLooks-s.looks)
	}
	if got := Changes(s, s.Again()); len(got) != 0 {
		t.Errorf("%q", got)
	}
	few := s
	few.looks = 30
	few.add(Repo{top, filepath.Join(top, ".git"), Dir}, false)
	if got := Changes(s, few); len(got) != 1 || !strings.Contains(got[0], "more worktrees than are looked at") {
		t.Errorf("%d left: %q", few.looks, got)
	}
}

func TestDirectoryKeepsFewNames(t *testing.T) {
	top := t.TempDir()
	for i := range 2 * piece {
		if err := os.Mkdir(filepath.Join(top, fmt.Sprintf("%06d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "HEAD"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".git", "objects", "refs"} { // found among all the others
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found, below, all, err := directory(top, 7)
	if len(found) != 2 || found[0].Kind != Dir || found[1].Kind != Bare || len(below) != 7 || all || err != nil {
		t.Errorf("%+v, %d below, %v", found, len(below), all)
	}
	if found, below, all, err = directory(top, 2*piece); len(found) != 2 || len(below) != 2*piece || !all || err != nil || !slices.IsSorted(below) {
		t.Errorf("%+v, %d below, %v", found, len(below), all)
	}
	looks := piece
	if got, shut := (Places{top, "0*"}).matches(&looks); len(got) == 0 || len(got) > piece || looks >= 0 || !slices.Equal(shut, []Shut{{top, ErrMore}}) {
		t.Errorf("%d matches, %d looks left", len(got), looks)
	}
}

// What a pattern finds is what package fs finds.
func TestMatches(t *testing.T) {
	top := t.TempDir()
	shell(t, top, "mkdir -p a/1/x a/2/x b/3/y 'a/[z' && ln -s a l && ln -s nowhere dangling && touch a/file")
	for _, pattern := range []string{"*", "a/*", "*/*/x", "l/*/x", "a/1/x", "a/9/x", "none/*", "a/file/*", "*/?", "a/[12]", `a/\[z`, "d*", "*/*/*"} {
		want, err := fs.Glob(os.DirFS(top), pattern)
		if err != nil {
			t.Fatal(err)
		}
		got, shut := Places{top, pattern}.Matches()
		for i, at := range got {
			got[i], _ = strings.CutPrefix(at, top+"/")
		}
		if !slices.Equal(got, want) || shut != nil {
			t.Errorf("%s: %q, want %q; %v", pattern, got, want, shut)
		}
	}
	if got, shut := (Places{"", "*"}).Matches(); got != nil || shut != nil {
		t.Errorf("of no directory: %q", got)
	}
}
