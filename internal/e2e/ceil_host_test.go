//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// reportEnv names a file that gets, line by line, what this host's helper offers
// ("hello:TAG") and what it reports of an execution that asks for every ceiling ("TAG",
// "skip:TAG" and "reason TAG TEXT"). scripts/kernels compares it with
// testdata/enforcement/kernels.txt.
const reportEnv = "SANDBOXD_TEST_REPORT"

// Whatever this host lacks, the report says so, and --require-enforced refuses before
// the command starts exactly where the report would miss a layer.
func TestCeilHostIsReportedAsItIs(t *testing.T) {
	u := testenv.Me()
	u.Home = testenv.TempDir(t, u)
	dir := testenv.TempDir(t, u)
	p := basePolicy(dir)
	p.Limits = protocol.Limits{CPUSeconds: 600, WallSeconds: 600, MemBytes: 1 << 30, Pids: 100, FsizeBytes: 1 << 30, OutputBytes: 1 << 20}

	c := connect(t, u, p, "--allow-unenforced")
	r := c.sh(2, dir, "echo ran >witness")
	c.down()
	if b, err := os.ReadFile(filepath.Join(dir, "witness")); err != nil || string(b) != "ran\n" {
		t.Fatalf("the command left %q, %v", b, err)
	}
	var lines []string
	for _, f := range c.hello.Features {
		lines = append(lines, "hello:"+f)
	}
	for _, e := range r.exit.Enforcement {
		tag, skipped := protocol.Layer(e)
		if skipped {
			lines = append(lines, "reason "+strings.Replace(strings.TrimPrefix(e, "skip:"), ":", "", 1))
			tag = "skip:" + tag
		}
		lines = append(lines, tag)
		t.Log(e)
	}
	if path := os.Getenv(reportEnv); path != "" {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := slices.Contains(c.hello.Features, "degraded"); got != r.exit.Degraded || got == slices.Contains(lines, "bwrap") {
		t.Errorf("degraded is %v in hello, %v at the exit: %q", got, r.exit.Degraded, lines)
	}

	has := func(tag string) bool { return slices.Contains(c.hello.Features, tag) }
	missing := protocol.Missing(protocol.Required(p, "linux", has), r.exit.Enforcement, nil)
	strict := connect(t, u, p, "--allow-unenforced", "--require-enforced")
	strict.start(2, dir, "sh", "-c", "echo ran >strict")
	got := strict.collect(2)
	_, err := os.Stat(filepath.Join(dir, "strict"))
	switch {
	case len(missing) == 0 && (got.exit == nil || err != nil):
		t.Errorf("nothing is missing, and yet: %+v, %v", got.fail, err)
	case len(missing) > 0 && (got.fail == nil || got.fail.Code != protocol.CodeRefused || err == nil):
		t.Errorf("%q are missing, and yet: %+v, %+v, the file: %v", missing, got.exit, got.fail, err)
	case len(missing) > 0:
		t.Logf("refused: %s", got.fail.Msg)
	}
	strict.down()
}
