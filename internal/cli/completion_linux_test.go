package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandboxd/internal/testenv"
)

// Command lines that a shell completes: what is typed, and what one of the proposals
// (bash, fish) or the line after the tab key (zsh) must be. "" stands for a word that
// is about to begin.
var completions = []struct {
	typed     []string
	proposed  string
	elsewhere string // must not be among them
}{
	{[]string{""}, "explain", "--rw"},
	{[]string{"doc"}, "doctor", "run"},
	{[]string{"run", "--repo"}, "--report", "--rw"},
	{[]string{"run", "--preset", ""}, "fence", "run"},
	{[]string{"run", "--rw", "somed"}, "somedir", "fence"},
	{[]string{"run", "--workspace", "some"}, "somedir", "somefile"},
	{[]string{"run", "--net", "full", "--", "sandboxd-test-p"}, "sandboxd-test-program", "somedir"},
	{[]string{"run", "sandboxd-test-p"}, "sandboxd-test-program", "somedir"},
	{[]string{"run", "--report", "sandboxd-test-program", "somef"}, "somefile", "--rw"},
	{[]string{"explain", "somef"}, "somefile", "fence"},
	{[]string{"explain", "--ar"}, "--argv", "--report"},
	{[]string{"policy", "fe"}, "fence", "workspace"},
	{[]string{"policy", "fence", "--format", ""}, "msgpack", "fence"},
	{[]string{"help", "pol"}, "policy", "run"},
	{[]string{"self-test", "--req"}, "--require", "--json"},
	{[]string{"completion", "zs"}, "zsh", "bash"},
}

// completing makes a directory with something to complete, and a program on PATH.
func completing(t *testing.T, shell string) (dir, script string) {
	t.Helper()
	dir = t.TempDir()
	for _, err := range []error{
		os.Mkdir(dir+"/somedir", 0o755), os.WriteFile(dir+"/somefile", nil, 0o644), os.Mkdir(dir+"/.bin", 0o755),
		os.WriteFile(dir+"/.bin/sandboxd-test-program", []byte("#!/bin/sh\n"), 0o755),
		os.WriteFile(dir+"/.bin/sandboxd", []byte("#!/bin/sh\n"), 0o755),
		os.WriteFile(dir+"/.script", []byte(output(t, "completion", shell)), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir, dir + "/.script"
}

func shellIn(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir + "/.bin:/usr/local/bin:/usr/bin:/bin", "HOME=" + dir, "TERM=dumb", "LC_ALL=C.UTF-8"}
	return cmd
}

func checkProposals(t *testing.T, typed []string, got []string, want, not string) {
	t.Helper()
	found := false
	for _, word := range got {
		word = strings.TrimRight(word, "/")
		found = found || word == want
		if word == not {
			t.Errorf("%q: %q is proposed", typed, not)
		}
	}
	if !found {
		t.Errorf("%q: got %q, want %q among them", typed, got, want)
	}
}

func TestBashCompletes(t *testing.T) {
	bash := testenv.Tool(t, "bash")
	dir, script := completing(t, "bash")
	for _, c := range completions {
		ask := `source "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _sandboxd; printf '%s\n' "${COMPREPLY[@]}"`
		out, err := shellIn(dir, append([]string{bash, "--norc", "-c", ask, "bash", script, "sandboxd"}, c.typed...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		checkProposals(t, c.typed, strings.Fields(string(out)), c.proposed, c.elsewhere)
	}
	// bash takes "=" for a word of its own.
	out, _ := shellIn(dir, bash, "--norc", "-c", `source "$1"; COMP_WORDS=(sandboxd run --net = f) COMP_CWORD=4; _sandboxd; echo "${COMPREPLY[@]}"`, "bash", script).CombinedOutput()
	if strings.TrimSpace(string(out)) != "full" {
		t.Errorf("--net=f: %q", out)
	}
}

func TestFishCompletes(t *testing.T) {
	fish := testenv.Tool(t, "fish")
	dir, script := completing(t, "fish")
	for _, c := range completions {
		line := "sandboxd " + strings.Join(c.typed, " ")
		out, err := shellIn(dir, fish, "--no-config", "-c", `source $argv[1]; complete --do-complete=$argv[2]`, script, line).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var got []string
		for l := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(l), "\t")
			got = append(got, word)
		}
		checkProposals(t, c.typed, got, c.proposed, c.elsewhere)
	}
}

// zsh completes on a terminal only: each line is typed there, and the shell prints what
// it would run.
func TestZshCompletes(t *testing.T) {
	zsh := testenv.Tool(t, "zsh")
	dir, script := completing(t, "zsh")
	master, slave := testenv.Terminal(t)
	cmd := shellIn(dir, zsh, "-f", "-i")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	slave.Close()
	go func() { // the screen is of no interest, and must not fill up
		b := make([]byte, 4096)
		for {
			if _, err := master.Read(b); err != nil {
				return
			}
		}
	}()
	log := filepath.Join(dir, ".log")
	said := func(want string) bool {
		b, _ := os.ReadFile(log)
		return strings.Contains(string(b), want)
	}
	master.WriteString("unsetopt beep; autoload -U compinit; compinit -u -D; source " + script +
		"; sandboxd() { print -r -- \"ARGS:$*:\" >>" + log + " }; sandboxd ready\n")
	testenv.Eventually(t, "a shell that is ready", func() bool { return said("ARGS:ready:") })
	for _, c := range completions {
		last := len(c.typed) - 1
		if c.typed[last] == "" {
			continue // a menu, not one proposal
		}
		master.WriteString("sandboxd " + strings.Join(c.typed, " ") + "\t\n")
		want := "ARGS:" + strings.TrimSpace(strings.Join(append(c.typed[:last:last], c.proposed), " ")) + ":"
		testenv.Eventually(t, want, func() bool { return said(want) })
	}
}

// The page has no fault that man finds.
func TestManualIsWellFormed(t *testing.T) {
	man := testenv.Tool(t, "man")
	cmd := exec.Command(man, "--warnings", "-l", "-")
	cmd.Stdin = strings.NewReader(output(t, "man"))
	cmd.Env = append(os.Environ(), "MANPAGER=cat", "LC_ALL=C.UTF-8", "MANWIDTH=80", "MANOPT=")
	var warnings strings.Builder
	cmd.Stderr = &warnings
	page, err := cmd.Output()
	if err != nil || warnings.Len() > 0 || !strings.Contains(string(page), "sandboxd run [flags] [--] CMD") {
		t.Errorf("%v: %s\n%.300s", err, &warnings, page)
	}
}
