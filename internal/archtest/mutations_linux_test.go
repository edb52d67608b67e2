package archtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// staleMutations lists the lines of a table like testdata/mutations.txt that turn nothing
// off or name a test that is not there, and counts those that were looked at.
func staleMutations(root, table string, tests func(pkg string) []string) (stale []string, looked int) {
	for line := range strings.Lines(table) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if f[0] == "" || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 5 {
			stale = append(stale, fmt.Sprintf("%s has %d fields, not five", f[0], len(f)))
			continue
		}
		looked++
		before, err := os.ReadFile(filepath.Join(root, f[1]))
		if err != nil {
			stale = append(stale, fmt.Sprintf("%s: %v", f[0], err))
			continue
		}
		after, err := exec.Command("sed", "-e", f[2], filepath.Join(root, f[1])).CombinedOutput()
		if err != nil {
			stale = append(stale, fmt.Sprintf("%s: %v: %s", f[0], err, after))
		} else if bytes.Equal(before, after) {
			stale = append(stale, fmt.Sprintf("%s changes nothing in %s", f[0], f[1]))
		}
		pkg, internal := strings.CutPrefix(f[3], "./internal/")
		if !internal {
			pkg = filepath.Join("..", f[3])
		}
		if !slices.Contains(tests(pkg), f[4]) {
			stale = append(stale, fmt.Sprintf("%s: %s has no %s", f[0], f[3], f[4]))
		}
	}
	return stale, looked
}

// A mutation whose line was edited meanwhile proves nothing, and only a whole
// `make mutate` would say so.
func TestMutationsFindTheirLines(t *testing.T) {
	root := testenv.Root(t)
	table, err := os.ReadFile(filepath.Join(root, "testdata", "mutations.txt"))
	if err != nil {
		t.Fatal(err)
	}
	tests := func(pkg string) []string { return testsOf(t, pkg) }
	stale, looked := staleMutations(root, string(table), tests)
	if looked < 50 {
		t.Errorf("%d mutations were looked at", looked)
	}
	for _, s := range stale {
		t.Error(s)
	}

	const here = "internal/archtest/mutations_linux_test.go"
	for _, bad := range []string{
		"few\t" + here,
		"file\tinternal/nowhere.go\ts/a/b/\t./internal/archtest\tTestMutationsFindTheirLines",
		"idle\t" + here + "\ts/^no such line$//\t./internal/archtest\tTestMutationsFindTheirLines",
		"sed\t" + here + "\ts/(/\t./internal/archtest\tTestMutationsFindTheirLines",
		"test\t" + here + "\ts/package/x/\t./internal/archtest\tTestNowhere",
	} {
		if stale, _ := staleMutations(root, bad+"\n", tests); len(stale) != 1 {
			t.Errorf("%q: %q", bad, stale)
		}
	}
}
