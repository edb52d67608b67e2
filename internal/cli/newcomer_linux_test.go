package cli

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

// A first argument that belongs behind a command is no flag of the server, whose own
// flags all reach it.
func TestServerKeepsItsFlags(t *testing.T) {
	usage, err := exec.Command(testenv.Binary(t), "help", "server").Output()
	if err != nil {
		t.Fatal(err)
	}
	flags := parseUsage(string(usage))
	if len(flags) < 7 {
		t.Fatalf("the server's usage has only %v", flags)
	}
	both := 0
	for _, f := range flags {
		if Role("--" + f.name) {
			t.Errorf("--%s does not reach the server", f.name)
		}
		if slices.ContainsFunc(flagTable(), func(own flag) bool { return own.name == f.name }) {
			both++
		}
	}
	if both != len(serverToo) {
		t.Errorf("%d flags are the server's and in the table, and serverToo is %q", both, serverToo)
	}
	for _, arg := range []string{"--", "--report", "--rw=/x", "run", "--version"} {
		if !Role(arg) {
			t.Errorf("%q reaches the server", arg)
		}
	}
}

// What other tools call a flag is no flag here, and what it is taken for is one.
func TestElsewhereNamesFlags(t *testing.T) {
	var names []string
	for _, f := range flagTable() {
		names = append(names, f.name)
	}
	for other, here := range elsewhere() {
		if slices.Contains(names, other) || !slices.Contains(names, here) {
			t.Errorf("%s -> %s", other, here)
		}
	}
}

func TestSimilarIsNoGuess(t *testing.T) {
	names := []string{"man", "mem", "report", "workspace", "policy", "self-test", "run"}
	for in, want := range map[string]string{
		"make": "", "memory": "mem", "manual": "man", "reprot": "report", "rep": "report", "workspce": "workspace", "Run": "run",
		"selftest": "self-test", "test": "", "ru": "run", "x": "", "polcy": "policy", "stop": "",
	} {
		if got := similar(in, names); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// Help is as wide as most terminals, whatever is put into the table.
func TestHelpFitsATerminal(t *testing.T) {
	for _, args := range append([][]string{{}}, each(commands())...) {
		var out bytes.Buffer
		if code := help(args, System{Stdout: &out}); code != 0 || out.Len() == 0 {
			t.Fatalf("help %q: exit %d", args, code)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("help %q: %d columns: %s", args, n, line)
			}
		}
	}
}

// each gives the arguments of help for each command whose text is made here.
func each(commands []command) (out [][]string) {
	for _, c := range commands {
		if c.usage == "" {
			out = append(out, []string{c.name})
		}
	}
	return out
}

// Ceilings that the kernel counted or sent a signal for are said, others not guessed.
func TestCeilings(t *testing.T) {
	all := protocol.Limits{FsizeBytes: 1 << 20, CPUSeconds: 2, MemBytes: 1, Pids: 1}
	for _, c := range []struct {
		signal      int
		enforcement []string
		limits      protocol.Limits
		want        string
	}{
		{25, nil, all, "SIGXFSZ"},
		{24, nil, all, "more than 2 s of CPU time"},
		{25, nil, protocol.Limits{}, ""},
		{9, nil, all, ""},
		{9, []string{"cgroup-v2:pids_allowance=3", "cgroup-v2:oom_kill=2"}, all, "2 of the command's processes (--mem)"},
		{0, []string{"cgroup-v2:pids_denied=7"}, all, "7 times another process or thread (--pids)"},
		{0, []string{"cgroup-v2:oom_kill=0", "cgroup-v2", "skip:cgroup-v2: oom_kill=4"}, all, ""},
	} {
		res := broker.Result{ExecExit: protocol.ExecExit{Signal: c.signal, Enforcement: c.enforcement}}
		got := ceilings(res, c.limits)
		if (c.want == "") != (len(got) == 0) || !strings.Contains(strings.Join(got, "|"), c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
