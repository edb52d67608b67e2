package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/selftest"
	"sandboxd/internal/server"
)

func output(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main(args, System{Stdout: &out, Stderr: &errs, ServerUsage: server.Usage}); code != 0 || errs.Len() > 0 {
		t.Fatalf("%q: exit %d: %s", args, code, &errs)
	}
	return out.String()
}

// The usage texts that are read for the manual name every flag that is accepted, and
// no other.
func TestUsageTextsAreRead(t *testing.T) {
	for _, f := range parseUsage(server.Usage) {
		args := []string{"--" + f.name}
		switch {
		case strings.Contains(f.arg, "|"):
			args = append(args, strings.Split(f.arg, "|")[0])
		case f.name == "accept-skip":
			args = append(args, "bwrap")
		case f.arg != "":
			args = append(args, "/x")
		}
		if _, err := server.ParseOptions(args); err != nil || f.help == "" {
			t.Errorf("%q: %v, %q", args, err, f.help)
		}
	}
	if n := len(parseUsage(server.Usage)); n < 8 {
		t.Errorf("%d flags of the server", n)
	}
	names := []string{}
	for _, f := range parseUsage(selftest.Usage) {
		names = append(names, f.name)
	}
	if want := []string{"json", "require", "only", "bwrap", "cgroup-base", "dir"}; !slices.Equal(names, want) {
		t.Errorf("self-test has %q, want %q", names, want)
	}
}

// The manual, the completions and the help name every command and every flag.
func TestEverythingIsNamed(t *testing.T) {
	man := strings.ReplaceAll(output(t, "man"), `\-`, "-")
	bash, zsh, fish := output(t, "completion", "bash"), output(t, "completion", "zsh"), output(t, "completion", "fish")
	for _, c := range people() {
		if !strings.Contains(output(t, "help"), "sandboxd "+c.name) || !strings.Contains(man, "sandboxd "+c.name) {
			t.Errorf("the help or the manual does not name %s", c.name)
		}
		for name, script := range map[string]string{"bash": bash, "zsh": zsh, "fish": fish} {
			if !strings.Contains(script, c.name) {
				t.Errorf("%s does not complete %s", name, c.name)
			}
		}
		for _, f := range c.allFlags() {
			if !strings.Contains(output(t, "help", c.name), "--"+f.name) || !strings.Contains(man, "--"+f.name) {
				t.Errorf("the help or the manual does not name --%s of %s", f.name, c.name)
			}
			if !strings.Contains(bash, "--"+f.name) || !strings.Contains(zsh, "--"+f.name) || !strings.Contains(fish, "__sandboxd_is "+c.name+"' -l "+f.name) {
				t.Errorf("not all completions have --%s of %s", f.name, c.name)
			}
		}
	}
	for _, f := range parseUsage(server.Usage) {
		if !strings.Contains(man, "--"+f.name) {
			t.Errorf("the manual does not name the server's --%s", f.name)
		}
	}
}

func TestFlagsBelongToCommands(t *testing.T) {
	for _, f := range flagTable() {
		if f.use == 0 || f.help == "" || f.set == nil {
			t.Errorf("--%s: %+v", f.name, f)
		}
	}
	for _, c := range []struct {
		use  use
		has  []string
		lack []string
	}{
		{forRun, []string{"report", "json", "allow-degraded", "policy"}, []string{"argv", "format"}},
		{forExplain, []string{"argv", "json", "policy", "preset"}, []string{"report", "cgroup-base", "format"}},
		{forPolicy, []string{"format", "mem", "policy"}, []string{"json", "bwrap", "report"}},
		{forDoctor, []string{"json", "bwrap", "cgroup-base"}, []string{"rw", "preset"}},
	} {
		names := []string{}
		for _, f := range flagsOf(c.use) {
			names = append(names, f.name)
		}
		for _, name := range c.has {
			if !slices.Contains(names, name) {
				t.Errorf("%d lacks --%s", c.use, name)
			}
		}
		for _, name := range c.lack {
			if slices.Contains(names, name) {
				t.Errorf("%d has --%s", c.use, name)
			}
		}
	}
}

func TestSimilar(t *testing.T) {
	names := []string{"run", "explain", "policy", "doctor", "self-test"}
	for in, want := range map[string]string{"exlain": "explain", "explian": "explain", "docter": "doctor", "rnu": "run", "selftest": "self-test", "ls": "", "make": "", "": "", "x": ""} {
		if got := similar(in, names); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTakes(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  operand
		words []string
	}{
		{"preset", wordsValue, []string{"workspace", "fence"}}, {"net", wordsValue, []string{"off", "full"}}, {"policy", fileValue, nil},
		{"workspace", dirValue, nil}, {"rw", fileValue, nil}, {"mount", fileValue, nil}, {"scratch", fileValue, nil}, {"mem", anyValue, nil},
		{"env", anyValue, nil}, {"report", noValue, nil}, {"format", wordsValue, []string{"json", "msgpack"}},
	} {
		for _, f := range flagTable() {
			if kind, words := f.takes(); f.name == c.name && (kind != c.kind || !slices.Equal(words, c.words)) {
				t.Errorf("--%s takes %d %q", c.name, kind, words)
			}
		}
	}
}
