package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// jobs splits a workflow into its jobs: names indented by two below "jobs:".
func jobs(text string) map[string]string {
	_, text, _ = strings.Cut(text, "\njobs:\n")
	out, name := map[string]string{}, ""
	head := regexp.MustCompile(`^  ([a-z]+):$`)
	for _, line := range strings.Split(text, "\n") {
		if m := head.FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		out[name] += line + "\n"
	}
	return out
}

// The workflow holds what the design asks of it: several distributions and macOS, the
// self-test as a gate before the tests, the fence required, and every action by version.
func TestWorkflow(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testenv.Root(t), ".github", "workflows", "ci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if !strings.Contains(text, "\nenv:\n  SANDBOXD_FENCE_REQUIRED: \"1\"\n") {
		t.Error("SANDBOXD_FENCE_REQUIRED is not set for every job")
	}
	uses := regexp.MustCompile(`uses: (\S+)`).FindAllStringSubmatch(text, -1)
	for _, m := range uses {
		if !regexp.MustCompile(`^actions/[a-z-]+@v\d+$|@[0-9a-f]{40}$`).MatchString(m[1]) {
			t.Errorf("the action %s has no version, or is a third party's without a commit", m[1])
		}
	}
	for _, soft := range []string{"continue-on-error", "|| true", "SANDBOXD_FENCE_REQUIRED: \"0\""} {
		if strings.Contains(text, soft) {
			t.Errorf("%q lets something fail unnoticed", soft)
		}
	}
	all := jobs(text)
	for name, runs := range map[string][]string{
		"ubuntu":        {"runs-on: ${{ matrix.runner }}", "ubuntu-24.04-arm", "scripts/test"},
		"distributions": {"debian:", "fedora:", "archlinux:", "scripts/test"},
		"macos":         {"macos-", "-intel", "TMPDIR: /private/tmp", "go test ./..."},
	} {
		job := all[name]
		for _, want := range runs {
			if !strings.Contains(job, want) {
				t.Errorf("the job %s lacks %q", name, want)
			}
		}
		gate, tests := strings.Index(job, "run: ./sandboxd self-test\n"), strings.Index(job, "- run: "+runs[len(runs)-1])
		if gate < 0 || tests < gate {
			t.Errorf("the self-test is no gate before the tests of the job %s", name)
		}
	}
	if !strings.Contains(all["windows"], "refuses to serve") || len(uses) == 0 {
		t.Error("the job for Windows does not see that it refuses to serve")
	}
}
