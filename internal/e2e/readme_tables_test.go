//go:build linux

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/fence"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/selftest"
	"sandboxd/internal/testenv"
)

var update = flag.Bool("update", false, "write the tables of README.md anew")

func readme(t *testing.T) (path, text string) {
	t.Helper()
	path = filepath.Join(testenv.Root(t), "README.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(b)
}

// The README's tables of what is enforced are made from the data that enforces it.
func TestReadmeTables(t *testing.T) {
	path, text := readme(t)
	want := text
	for name, table := range map[string]string{"view": viewTable(), "caches": cacheTable(), "guard": guardTable(), "probes": probeTable()} {
		if rows := strings.Count(table, "\n"); rows < 6 {
			t.Fatalf("the table of %s has %d lines", name, rows)
		}
		begin, end := "<!-- "+name+":begin -->\n", "<!-- "+name+":end -->"
		before, rest, ok := strings.Cut(want, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("README.md has no part %q", name)
		}
		want = before + begin + table + end + after
	}
	switch {
	case want == text:
	case !*update:
		t.Error("README.md has other tables than the data: go test ./internal/e2e -run TestReadmeTables -update")
	default:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func viewTable() string {
	var b strings.Builder
	b.WriteString("| base view | holds |\n|---|---|\n")
	root := plan.Base(host.Facts{OS: "linux"})
	for _, d := range plan.Base(host.Facts{OS: "linux", UID: 1000}) {
		but := ""
		if !slices.Contains(root, d) {
			but = "; for uid 0, whom file modes do not stop, only its public parts"
		}
		fmt.Fprintf(&b, "| `%s` | %s%s |\n", d.Path, d.Why, but)
	}
	b.WriteString("\nHidden there, unless the policy names it or something in it: " + places(plan.ServicePlaces) +
		" (`{uid}` is yours), the directory of SSH_AUTH_SOCK; for uid 0 also " + places(plan.SecretPlaces) + ".\n")
	return b.String()
}

func places(list []plan.Place) string {
	var names []string
	for _, p := range list {
		names = append(names, p.Path)
	}
	return ticked(names)
}

func ticked(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

func cacheTable() string {
	var b strings.Builder
	b.WriteString("| cache | below HOME | moved by |\n|---|---|---|\n")
	for _, c := range fence.Caches {
		if c.ReadOnly {
			continue
		}
		var where, vars []string
		for _, tail := range c.Tails {
			where = append(where, filepath.Join(c.Default, tail))
		}
		for _, s := range c.Sources {
			vars = append(vars, s.Var)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Tool, ticked(where), ticked(vars))
	}
	return b.String()
}

func guardTable() string {
	var b strings.Builder
	b.WriteString("| guarded | in |\n|---|---|\n")
	for _, g := range []struct {
		in   string
		list []fence.Guarded
	}{
		{"a git directory", append(slices.Clone(fence.GitGuarded), fence.Modules)},
		{"a linked worktree's git directory", fence.WorktreeGuarded},
		{"the workspace", fence.WorkspaceGuarded},
		{"HOME, as far as it is granted", fence.HomeGuarded},
	} {
		var names []string
		for _, e := range g.list {
			names = append(names, e.Name)
		}
		fmt.Fprintf(&b, "| %s | %s |\n", ticked(names), g.in)
	}
	return b.String()
}

func probeTable() string {
	var b strings.Builder
	b.WriteString("| probe | what is tried | denied by any of |\n|---|---|---|\n")
	for _, p := range selftest.Probes("linux") {
		by := ticked(p.Layers)
		if by == "" {
			by = "the helper itself"
		}
		name := ticked([]string{p.Name})
		if p.Linux {
			name += " (Linux)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, p.Means, by)
	}
	return b.String()
}
