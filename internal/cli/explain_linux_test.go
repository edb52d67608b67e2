package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// sandboxdIn runs the binary in a directory, with an environment of its own.
func sandboxdIn(t *testing.T, u testenv.User, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(testenv.Binary(t), args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	testenv.As(t, cmd, u)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// workspaceOf makes a directory of a user's, with things to ask about.
func workspaceOf(t *testing.T, u testenv.User, files ...string) string {
	t.Helper()
	dir := testenv.TempDir(t, u)
	for _, name := range files {
		path := filepath.Join(dir, name)
		for _, step := range []string{filepath.Dir(path), path} {
			if strings.HasSuffix(name, "/") || step != path {
				if err := os.MkdirAll(step, 0o755); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(step, []byte("content\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, u.UID, u.GID)
	}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func explained(t *testing.T, u testenv.User, dir string, args ...string) explanation {
	t.Helper()
	out, errs, code := sandboxdIn(t, u, dir, append([]string{"explain", "--json"}, args...)...)
	var doc explanation
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
	}
	return doc
}

// What explain says of a path is what a command in the jail can do there, before and
// after the change that explain proposes. The kernel is the judge.
func TestExplainAgreesWithTheJail(t *testing.T) {
	needJail(t)
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		dir := workspaceOf(t, u, "w/src/f", "w/secret/f", "other/f", "shown/f", "w/.git/config", "w/.git/hooks/", "w/.git/HEAD", "w/.git/objects/", "w/.git/refs/")
		outside, err := os.MkdirTemp("/var/tmp", "sandboxd-test-") // no place of a jail's own
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(outside) })
		for _, path := range []string{outside, outside + "/f", outside + "/hidden"} {
			if path != outside {
				err = os.WriteFile(path, []byte("content\n"), 0o644)
			}
			if err := errors.Join(err, os.Chown(path, u.UID, u.GID)); err != nil {
				t.Fatal(err)
			}
		}
		w := filepath.Join(dir, "w")
		flags := []string{"--protect", "secret", "--protect", outside + "/hidden", "--ro", "../shown", "--mount", w + "/src"}
		for path, want := range map[string]struct {
			read, write bool
			list        string
		}{
			"new":          {true, true, "writable_roots"},
			"src/f":        {true, false, "mounts"},
			"src/f/below":  {false, false, "mounts"}, // f is a file
			".git/HEAD/x":  {false, false, "writable_roots"},
			"secret/f":     {false, false, "protected"},
			"../other/f":   {true, true, "scratch"},
			outside + "/f": {false, false, ""},
			// One change is not enough: it is granted by nothing, and protected.
			outside + "/hidden": {false, false, ""},
			"../shown/f":        {true, false, "readable_roots"},
			".git/config":       {true, false, "mounts"},
			"/usr/bin/env":      {true, false, "base"},
			"/tmp/private":      {true, true, "scratch"},
			"/dev/null":         {true, true, "dev"},
			"/etc/passwd":       {true, false, "base"},
			"/proc/version":     {true, false, "proc"},
		} {
			a := explained(t, u, w, append(flags, path)...).Paths[0]
			list := ""
			if a.Decided != nil {
				list = a.Decided.List
			}
			if a.Read != want.read || a.Write != want.write || list != want.list {
				t.Errorf("%s: %+v by %q, want %+v", path, a, list, want)
			}
			if a.Missing == "" && path != "../other/f" { // which the jail has not, but could have
				holds(t, u, w, flags, path, "read", want.read)
			}
			if path != "../other/f" {
				holds(t, u, w, flags, path, "write", want.write)
			}
			for _, adv := range a.Advice {
				take(t, u, w, flags, path, adv)
			}
		}
	})
}

// holds tries in the jail what was said.
func holds(t *testing.T, u testenv.User, w string, flags []string, path, what string, want bool) {
	t.Helper()
	script := map[string]string{"read": `exec <"$1"`, "write": `exec >>"$1"`}[what]
	args := append(append([]string{"run"}, flags...), "--", "sh", "-c", script, "sh", path)
	_, errs, code := sandboxdIn(t, u, w, args...)
	if code == exitFailed || (code == 0) != want {
		t.Errorf("%s: %s gives exit code %d, want success: %v\n%s", path, what, code, want, errs)
	}
}

// take follows an advice that consists of flags, and looks whether it helps.
func take(t *testing.T, u testenv.User, w string, flags []string, path string, adv advice) {
	t.Helper()
	what := map[string]string{"read": "read", "write": "write", "both": "write", "host-read": "read", "host": "write"}[adv.Want]
	if what == "" || len(adv.Change) == 0 {
		if adv.Why == "" {
			t.Errorf("%s: neither advice nor a reason: %+v", path, adv)
		}
		return
	}
	for _, change := range adv.Change {
		switch words := strings.Fields(change); {
		case words[0] == "without" && words[1] == "--protect":
			i := slices.IndexFunc(flags, func(f string) bool { return absolute(w, f) == words[2] })
			flags = slices.Delete(slices.Clone(flags), i-1, i+1)
		case strings.Contains(change, "in place of"):
			flags = append(flags[:len(flags)-2:len(flags)-2], words[0], words[1])
		case words[0] == "--rw", words[0] == "--ro", words[0] == "--mount":
			flags = append(flags[:len(flags):len(flags)], words...)
		default:
			t.Errorf("%s: what is %q?", path, change)
		}
	}
	holds(t, u, w, flags, path, what, true)
}

// Nothing of what is explained is run, nor bubblewrap: only git, which is asked for its
// configuration.
func TestExplainRunsNothing(t *testing.T) {
	strace := testenv.Tool(t, "strace")
	dir := workspaceOf(t, testenv.Me(), "w/f", "w/.git/config", "w/.git/HEAD", "w/.git/objects/", "w/.git/refs/")
	log := filepath.Join(dir, "log")
	cmd := exec.Command(strace, "-f", "-qq", "-o", log, "-e", "trace=execve,execveat,unshare,setns,mount,unlink,unlinkat,mkdir,mkdirat,rename,renameat,renameat2",
		testenv.Binary(t), "explain", "/etc/passwd", "f", ".git/config")
	cmd.Dir, cmd.Env = filepath.Join(dir, "w"), []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "to write it") {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	git := regexp.MustCompile(`execve\("[^"]*/git", \["[^"]*git", "config", `)
	self := 0
	for line := range strings.Lines(string(b)) {
		switch {
		case strings.Contains(line, testenv.Binary(t)):
			self++
		case git.MatchString(line), strings.Contains(line, "SIG"), strings.Contains(line, "+++"), strings.Contains(line, "resumed"):
		default:
			t.Errorf("explain does this: %s", line)
		}
	}
	if self != 1 {
		t.Errorf("%d starts of sandboxd in %s", self, b)
	}
}

// The arguments that explain shows are those that bubblewrap is given.
func TestExplainedArgvIsTheOne(t *testing.T) {
	needJail(t)
	u := testenv.Me()
	dir := workspaceOf(t, u, "w/f", "w/.git/config", "w/.git/hooks/", "w/.git/HEAD", "w/.git/objects/", "w/.git/refs/", "shown/")
	// A bubblewrap that writes down what it is given: the arguments are in a file.
	spy := filepath.Join(dir, "spy")
	script := "#!/bin/sh\n[ \"$1\" != --args ] || cat /proc/self/fd/$2 >" + dir + "/given\nexec /usr/bin/bwrap \"$@\"\n"
	if err := os.WriteFile(spy, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--ro", "../shown", "--protect", "gone", "--net", "full"}
	w := filepath.Join(dir, "w")
	if _, errs, code := sandboxdIn(t, u, w, append(append([]string{"run", "--bwrap", spy}, flags...), "--", "true")...); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	given, err := os.ReadFile(filepath.Join(dir, "given"))
	if err != nil {
		t.Fatal(err)
	}
	doc := explained(t, u, w, append([]string{"--argv"}, flags...)...)
	got := strings.Join(doc.Argv.Bwrap, "\x00") + "\x00"
	if got != string(given) {
		t.Errorf("explain says\n%q\nbubblewrap got\n%q", got, given)
	}
	if n := len(doc.Argv.Descriptors); n == 0 || strings.Count(got, "-fd\x00")+strings.Count(got, "--ro-bind-data\x00") != n {
		t.Errorf("%d descriptors for %q", n, got)
	}
}
