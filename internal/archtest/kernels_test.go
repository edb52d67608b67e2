package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// kernelTable is what a kernel matrix of testdata/enforcement/kernels.txt names.
type kernelTable struct {
	boots, rows map[string]bool
	runs        map[string]int // of a row
	faults      []string
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)

// testsOf lists the tests of a package below internal that Linux has.
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "internal", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_darwin_test.go") || strings.HasSuffix(f, "_other_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(b), -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// readKernels reads a matrix; tests gives the tests of a package, probes the self-test's.
func readKernels(text string, tests func(pkg string) []string, probes []string) kernelTable {
	k := kernelTable{boots: map[string]bool{}, rows: map[string]bool{}, runs: map[string]int{}}
	fault := func(n int, format string, args ...any) {
		k.faults = append(k.faults, fmt.Sprintf("line %d: ", n+1)+fmt.Sprintf(format, args...))
	}
	least := map[string]int{"boot": 4, "optional": 3, "row": 6, "soak": 6, "run": 3, "skip": 4, "report": 3, "reason": 4, "unproven": 3}
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < max(least[f[0]], 2) {
			fault(n, "no such line: %s", line)
			continue
		}
		switch name := f[1]; f[0] {
		case "boot":
			k.boots[name] = true
		case "optional":
			if !k.boots[name] {
				fault(n, "no boot %s", name)
			}
		case "row", "soak":
			if !k.boots[f[2]] || k.rows[name] {
				fault(n, "no boot %s, or row %s twice", f[2], name)
			}
			k.rows[name] = true
		case "run":
			k.runs[name]++
			names, what := []string(nil), "tests"
			if f[2] == "self-test" {
				names, what = probes, "probes"
			} else if names = tests(f[2]); len(names) == 0 {
				fault(n, "%s has no tests", f[2])
			}
			for _, one := range f[3:] {
				one = strings.TrimPrefix(one, "-")
				if !slices.ContainsFunc(names, func(s string) bool { return strings.HasPrefix(s, one) && (what == "tests" || s == one) }) {
					fault(n, "%s: no %s are named %s", name, what, one)
				}
			}
			fallthrough
		default:
			if !k.rows[name] {
				fault(n, "no row %s", name)
			}
			if _, known := least[f[0]]; !known {
				fault(n, "no such line: %s", line)
			}
		}
	}
	for row := range k.rows {
		if k.runs[row] == 0 {
			k.faults = append(k.faults, "row "+row+" runs nothing")
		}
	}
	return k
}

// A row of the kernel matrix that names a test which was renamed runs it no more, and one
// about a row that there is not states nothing; neither would be noticed.
func TestKernelMatrixNamesWhatThereIs(t *testing.T) {
	root := testenv.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "testdata", "enforcement", "kernels.txt"))
	if err != nil {
		t.Fatal(err)
	}
	ci, err := os.ReadFile(filepath.Join(root, "testdata", "enforcement", "ci-linux.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var probes []string // selftest's own test compares that file with the probes
	for _, line := range strings.Split(string(ci), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 0 {
			probes = append(probes, f[0])
		}
	}
	tests := func(pkg string) []string { return testsOf(t, pkg) }
	k := readKernels(string(text), tests, probes)
	if len(k.faults) > 0 || len(k.rows) < 10 {
		t.Errorf("%d rows: %s", len(k.rows), strings.Join(k.faults, "\n"))
	}

	const sound = "boot b meta -\nrow r b 0 delegated -\nrun r e2e TestCeil\nrun r self-test tcp\nskip r f why\n"
	if k := readKernels(sound, tests, probes); len(k.faults) > 0 {
		t.Errorf("the control: %q", k.faults)
	}
	for _, wrong := range []string{"run r e2e TestCeilHost TestNoSuch", "run r self-test tpc", "run r nonesuch", "run q e2e TestCeil", "skip q f why",
		"skip r", "row r b 0 delegated -", "row q c 0 delegated -", "optional c why", "row q b 0 delegated -", "reports r x", "report q x"} {
		if k := readKernels(sound+wrong+"\n", tests, probes); len(k.faults) == 0 {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
