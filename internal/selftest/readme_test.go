package selftest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// probeTable is the README's, made from the probes.
func probeTable() string {
	var b strings.Builder
	b.WriteString("| probe | what is tried | denied by any of |\n|---|---|---|\n")
	for _, p := range Probes("linux") {
		by := "the helper itself"
		if len(p.Layers) > 0 {
			by = "`" + strings.Join(p.Layers, "`, `") + "`"
		}
		name := "`" + p.Name + "`"
		if p.Linux {
			name += " (Linux)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, p.Means, by)
	}
	return b.String()
}

// TestReadme holds the README's table against the probes. `go test -v` prints it.
func TestReadme(t *testing.T) {
	want := probeTable()
	t.Log("\n" + want)
	b, err := os.ReadFile(filepath.Join(testenv.Root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), want) {
		t.Error("README.md has another table than the probes; put in what `go test -v -run TestReadme ./internal/selftest` prints")
	}
}
