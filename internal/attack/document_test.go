//go:build linux

package attack

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write CORPUS.md anew")

// TestDocument holds CORPUS.md, the list for people, against the tables.
func TestDocument(t *testing.T) {
	want := document()
	if *update {
		if err := os.WriteFile("CORPUS.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("CORPUS.md")
	if err != nil || string(got) != want {
		t.Errorf("CORPUS.md is not what the tables say (%v): go test ./internal/attack -run TestDocument -update", err)
	}
}

// document is what CORPUS.md holds: generated, so that it lists what runs.
func document() string {
	var b strings.Builder
	b.WriteString("# The corpus of attacks\n\nGenerated from the tables of this package by `go test ./internal/attack -run TestDocument -update`.\n\n" +
		"Each attack of `TestCorpus` runs twice: without a jail, where it has to succeed, and in one, where it must not. " +
		"\"needs\" is what a host may lack for the first; there the attack is no proof, and the test says so. " +
		"\"root\" has no control but root's. What is in the last column gets in by design.\n")
	classes := []string{}
	for _, a := range corpus {
		if !slices.Contains(classes, a.class) {
			classes = append(classes, a.class)
		}
	}
	for _, class := range classes {
		list := slices.DeleteFunc(slices.Clone(corpus), func(a attack) bool { return a.class != class })
		slices.SortStableFunc(list, func(a, b attack) int { return strings.Compare(a.name, b.name) })
		fmt.Fprintf(&b, "\n## %s: %d\n\n| attack | control | by design |\n|---|---|---|\n", class, len(list))
		for _, a := range list {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", a.name, control(a), a.open)
		}
	}
	fmt.Fprintf(&b, "\n## variables: %d\n\n`TestVariables`; the control is a policy that allows them: %s.\n", len(loaders), strings.Join(loaders, ", "))
	list := conversations()
	fmt.Fprintf(&b, "\n## protocol: %d\n\n`TestConversations`; the control is in the same conversation.\n\n", len(list))
	for _, x := range list {
		where := ""
		if x.running {
			where = ", while a command runs"
		}
		fmt.Fprintf(&b, "- %s%s\n", x.name, where)
	}
	b.WriteString("\n## with tests of their own\n\n" +
		"| class | test |\n|---|---|\n" +
		"| random conversations with real jails | `TestRandomConversations` |\n" +
		"| a broker that reads no more | `TestReaderIsGone` |\n" +
		"| forged reports | `TestForgedReports` |\n" +
		"| words to a terminal in messages and reports | `TestTerminalInjection` |\n" +
		"| variables that act before the command | `TestVariablesActOnTheCommandAlone` |\n" +
		"| programs planted on PATH | `TestPlantedPrograms` |\n" +
		"| the helper's own file and bubblewrap's name | `TestPlantedHelper` |\n" +
		"| memory and tasks | `internal/e2e`: `TestCeilMemory`, `TestCeilFork` |\n" +
		"| storms of forks while cancelled, pids that come round | `TestForkStormWhileCancelled`, `TestPidReuse` |\n" +
		"| inodes of the jail's own file systems | `TestInodes` |\n" +
		"| kernel file systems mounted inside a grant | `TestKernelFileSystemsInsideAGrant` |\n" +
		"| exhausted descriptors and namespaces | `internal/e2e`: `TestOutOfDescriptors`, `TestCeilBusyHost` |\n" +
		"| files that the host's tools run later | `internal/e2e`: `TestFenceNothingIsPlanted` |\n" +
		"| 32-bit system calls | `internal/seccomp`: `TestWitness` |\n")
	return b.String()
}

func control(a attack) string {
	words := []string{}
	if a.root {
		words = append(words, "root")
	}
	if a.userns {
		words = append(words, "a user namespace")
	}
	if a.needs != "" {
		words = append(words, "needs "+a.needs)
	}
	return strings.Join(words, ", ")
}
