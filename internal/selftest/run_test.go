package selftest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

func skip(tags ...string) Finding { return Finding{Probe: "p", Verdict: Skipped, Missing: tags} }

func TestConclude(t *testing.T) {
	good, bad := Finding{Verdict: Enforced}, Finding{Verdict: Failed}
	base := []string{"bwrap", "mounts:ro=1", "skip:landlock: none", "skip:cgroup-v2: none"}
	cases := []struct {
		name     string
		probes   []Finding
		require  []string
		want     Result
		text     string
		exit     int
		required string
	}{
		{"all", []Finding{good, good}, nil, Passed, "PASSED", 0, ""},
		{"skips", []Finding{good, skip("x"), skip("y")}, nil, PassedSkips, "PASSED WITH 2 SKIPPED", 0, ""},
		{"a failure", []Finding{good, bad, skip("x")}, nil, AnyFailed, "FAILED", 1, ""},
		{"nothing enforced", []Finding{skip("x")}, nil, NotRun, "NOT RUN (not a pass)", 3, ""},
		{"no probe", nil, nil, NotRun, "NOT RUN (not a pass)", 3, ""},
		{"a required skip", []Finding{good, skip("landlock-scope", "bwrap")}, []string{"bwrap"}, AnyFailed, "FAILED", 1, "p"},
		{"one could not be tried", []Finding{good, skip("x"), {Verdict: Untried}}, nil, NotRun, "NOT RUN (not a pass)", 3, ""},
		{"a failure, and one not tried", []Finding{bad, {Verdict: Untried}}, nil, AnyFailed, "FAILED", 1, ""},
		{"another one is required", []Finding{good, skip("landlock-scope")}, []string{"bwrap"}, PassedSkips, "PASSED WITH 1 SKIPPED", 0, ""},
		{"a required layer behind another one", []Finding{good}, []string{"landlock"}, AnyFailed, "FAILED", 1, "landlock"},
		{"all are required", []Finding{good, skip("cgroup-v2")}, []string{"all"}, AnyFailed, "FAILED", 1, "p,landlock,cgroup-v2"},
		{"all, and a control that proves nothing", []Finding{good, skip(unproven)}, []string{"all"}, AnyFailed, "FAILED", 1, "p,landlock,cgroup-v2"},
		{"a compiler is no layer", []Finding{good, skip("erlc")}, []string{"bwrap"}, PassedSkips, "PASSED WITH 1 SKIPPED", 0, ""},
		{"but can be named", []Finding{good, skip("erlc")}, []string{"erlc"}, AnyFailed, "FAILED", 1, "p"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := Run{Probes: c.probes, Enforcement: base}
			r.conclude(options{require: c.require})
			if r.Result != c.want || r.text() != c.text || r.Result.exit() != c.exit || strings.Join(r.Required, ",") != c.required {
				t.Errorf("got %q, %q, %d, %q", r.Result, r.text(), r.Result.exit(), r.Required)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"--json", "--require", "bwrap,landlock", "--cgroup-base", "/c", "--bwrap=/b"})
	if err != nil || !o.json || !slices.Equal(o.require, []string{"bwrap", "landlock"}) || o.cgroupBase != "/c" || o.bwrap != "/b" {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range [][]string{{"--require", "bwrp"}, {"--require", ""}, {"--require="}, {"--cgroup-bse", "/c"}, {"probe"}, {"--require", "degraded"}, {"--only", "tpc"}, {"--only="}} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

func TestPrinted(t *testing.T) {
	run := Run{Result: AnyFailed, OS: "linux", Probes: []Finding{{Probe: "tcp", Verdict: Failed, Means: "m", Reason: "got\x1b[31m\nthrough"}}, Failed: 1, Required: []string{"landlock"}}
	var out, progress bytes.Buffer
	p := newPrinter(System{Stdout: &out, Stderr: &progress}, options{}, nil)
	p.begin(run)
	p.progress(1, 1, "tcp")
	p.finding(run.Probes[0])
	if code := p.end(run); code != 1 {
		t.Errorf("exit %d", code)
	}
	if progress.Len() > 0 {
		t.Errorf("progress without a terminal: %q", &progress)
	}
	for _, want := range []string{"FAILED   tcp", "m: got [31m through\n", "skips are environmental, not passes", "required, but missing here: landlock\n", "\nRESULT: FAILED\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, &out)
		}
	}
	out.Reset()
	p = newPrinter(System{Stdout: &out, Stderr: &progress, Terminal: true}, options{json: true}, nil)
	p.begin(run)
	p.progress(1, 2, "tcp")
	p.end(run)
	var back Run
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Result != AnyFailed || len(back.Probes) != 1 {
		t.Errorf("got %+v, %v", back, err)
	}
	if !strings.Contains(progress.String(), "1 of 2") {
		t.Errorf("no progress on a terminal: %q", &progress)
	}
}

func TestOnly(t *testing.T) {
	o, err := parseOptions([]string{"--only", "tcp,environment"})
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := o.chosen(Probes("linux"))
	if err != nil || len(chosen) != 2 || chosen[0].Name != "environment" {
		t.Errorf("got %d probes, %v", len(chosen), err)
	}
	r := Run{Probes: []Finding{{Verdict: Enforced}}, Of: 33}
	r.conclude(o)
	if got := r.text() + r.part(); got != "PASSED (ONLY 1 OF 33 PROBES)" {
		t.Errorf("got %q", got)
	}
}

// Every file of testdata/enforcement that has one line a probe names each probe, and
// nothing else.
func TestEnforcementFilesNameEveryProbe(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Root(t), "testdata", "enforcement", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "kernels.txt" { // scripts/kernels reads it
			excepted(t, string(b))
			continue
		}
		read++
		goos := "linux"
		if strings.Contains(filepath.Base(file), "darwin") {
			goos = "darwin"
		}
		compareNames(t, filepath.Base(file), goos, string(b))
	}
	if read == 0 {
		t.Error("no file was looked at")
	}
}

// excepted holds the kernel matrix's exceptions against the probes.
func excepted(t *testing.T, text string) {
	t.Helper()
	found := 0
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "unproven" {
			continue
		}
		for _, name := range f[2:] {
			found++
			if !slices.ContainsFunc(Probes("linux"), func(p Probe) bool { return p.Name == name }) {
				t.Errorf("kernels.txt excepts %q, which is no probe", name)
			}
		}
	}
	if found == 0 {
		t.Error("kernels.txt excepts nothing: the form that this test reads has changed")
	}
}

func compareNames(t *testing.T, file, goos, text string) {
	t.Helper()
	var named []string
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if ok := len(f) == 2 && f[1] == string(Enforced) || len(f) > 2 && f[1] == string(Skipped); !ok {
			t.Errorf("%s:%d: expected PROBE ENFORCED or PROBE SKIPPED LAYER...", file, n+1)
		}
		named = append(named, f[0])
	}
	var names []string
	for _, p := range Probes(goos) {
		names = append(names, p.Name)
	}
	if !slices.Equal(named, names) {
		t.Errorf("%s names\n%q, the probes are\n%q", file, named, names)
	}
}

func TestProbeNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Probes("linux") {
		if seen[p.Name] || p.Means == "" || p.run == nil {
			t.Errorf("%+v", p)
		}
		seen[p.Name] = true
	}
	if len(Probes("darwin")) >= len(seen) || len(Probes("darwin")) == 0 {
		t.Error("macOS has fewer probes than Linux, and some")
	}
}

func TestFixtureParent(t *testing.T) {
	dir := t.TempDir()
	if _, err := fixtureParent(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing directory is accepted")
	}
	if real, _ := filepath.EvalSymlinks(dir); strings.HasPrefix(real, "/tmp/") {
		if _, err := fixtureParent(dir); err == nil || !strings.Contains(err.Error(), "scratch") {
			t.Errorf("below the scratch mount: %v", err)
		}
	}
	if got, err := fixtureParent("/var/tmp"); err != nil || got == "" {
		t.Errorf("/var/tmp: %q, %v", got, err)
	}
}

// A result that cannot be written is no pass, says so, and is an end.
func TestUnwritable(t *testing.T) {
	for _, o := range []options{{}, {json: true}} {
		for result, want := range map[Result]int{Passed: 1, AnyFailed: 1, NotRun: 3} {
			var progress bytes.Buffer
			lost := 0
			p := newPrinter(System{Stdout: broken{}, Stderr: &progress}, o, func() { lost++ })
			p.begin(Run{})
			p.finding(Finding{})
			if code := p.end(Run{Result: result}); code != want || lost != 1 || !strings.Contains(progress.String(), "cannot write the result: the disk is full") {
				t.Errorf("%+v, %s: exit code %d, lost %d times, %q", o, result, code, lost, &progress)
			}
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }
