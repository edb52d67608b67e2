package fence

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// tables are the README's tables, made from the data.
func tables() string {
	var b strings.Builder
	b.WriteString("| cache | below HOME | moved by |\n|---|---|---|\n")
	for _, c := range Caches {
		if c.ReadOnly {
			continue
		}
		var where, vars []string
		for _, tail := range c.Tails {
			where = append(where, "`"+filepath.Join(c.Default, tail)+"`")
		}
		for _, s := range c.Sources {
			vars = append(vars, "`"+s.Var+"`")
		}
		b.WriteString("| " + c.Tool + " | " + strings.Join(where, ", ") + " | " + strings.Join(vars, ", ") + " |\n")
	}
	b.WriteString("\n| guarded | in |\n|---|---|\n")
	for _, g := range []struct {
		in   string
		list []Guarded
	}{{"a git directory", append(GitGuarded[:len(GitGuarded):len(GitGuarded)], Modules)}, {"a linked worktree's git directory", WorktreeGuarded}, {"the workspace", WorkspaceGuarded}, {"HOME, where it is granted", HomeGuarded}} {
		var names []string
		for _, e := range g.list {
			names = append(names, "`"+e.Name+"`")
		}
		b.WriteString("| " + strings.Join(names, ", ") + " | " + g.in + " |\n")
	}
	return b.String()
}

// TestReadme holds the README's tables against the data. `go test -v` prints them.
func TestReadme(t *testing.T) {
	want := tables()
	t.Log("\n" + want)
	b, err := os.ReadFile(filepath.Join(testenv.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), want) {
		t.Error("README.md has other tables than the data; put in what `go test -v -run TestReadme ./internal/fence` prints")
	}
}
