package cli

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sandboxd/protocol"
	"sandboxd/protocol/broker"
)

func TestCheckWorkspace(t *testing.T) {
	for dir, want := range map[string]string{
		"/": "system directory", "/usr": "system directory", "/usr/lib/x": "system directory", "/etc/ssh": "system directory",
		"/tmp": "system directory", "/proc/1": "system directory", "/root": "system directory", "/home": "system directory",
		"/home/ann": "your home", "/users": "contains your home",
	} {
		home := "/home/ann"
		if dir == "/users" {
			home = "/users/x/ann"
		}
		if err := checkWorkspace(dir, home); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--workspace") {
			t.Errorf("%s: got %v, want %q", dir, err, want)
		}
	}
	for _, dir := range []string{"/home/ann/src", "/tmp/x", "/usrx", "/usr/src/linux", "/srv/x", "/work", "/root/x"} {
		if err := checkWorkspace(dir, "/home/ann"); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestPlace(t *testing.T) {
	s := System{Getwd: func() (string, error) { return "/usr", nil }}
	cases := []struct{ flag, workspace, cwd string }{
		{"/usr", "/usr", "/usr"}, // named: meant
		{"/", "/", "/usr"},
		{"lib", "/usr/lib", "/usr/lib"},
		{"/srv/../opt/", "/opt", "/opt"},
	}
	for _, c := range cases {
		w, cwd, err := place(options{workspace: c.flag}, s)
		if err != nil || w != c.workspace || cwd != c.cwd {
			t.Errorf("%s: got %s, %s, %v", c.flag, w, cwd, err)
		}
	}
	if _, _, err := place(options{}, s); err == nil {
		t.Error("/usr is taken as a workspace though nobody named it")
	}
}

// taskAt builds what flags come to, in a directory of its own.
func taskAt(t *testing.T, cwd, flags string) task {
	t.Helper()
	o, err := parseRun(strings.Fields(flags + " -- x"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := newTask(o, System{Getwd: func() (string, error) { return cwd, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestWorkspacePolicy(t *testing.T) {
	w := t.TempDir()
	if err := os.Mkdir(w+"/in", 0o755); err != nil {
		t.Fatal(err)
	}
	made := taskAt(t, w+"/in", "--workspace "+w+" --rw sub --ro ../lib --mount s.sock:rw --scratch scratch --env EXTRA")
	p := made.policy
	if !slices.Equal(p.WritableRoots, []string{w, w + "/in/sub"}) || !slices.Equal(p.ReadableRoots, []string{w + "/lib"}) ||
		p.Mounts[0].Path != w+"/in/s.sock" || p.Scratch != w+"/in/scratch" || p.Network.Mode != protocol.NetOff {
		t.Errorf("got %+v", p)
	}
	if p.Limits != (protocol.Limits{OutputBytes: defaultOutput}) {
		t.Errorf("limits: %+v", p.Limits)
	}
	if !slices.IsSorted(p.EnvAllow) || !slices.Contains(p.EnvAllow, "EXTRA") {
		t.Errorf("env_allow: %q", p.EnvAllow)
	}
	for key, want := range map[entryKey]string{
		{"writable_roots", 0}: "the workspace", {"writable_roots", 1}: "--rw", {"readable_roots", 0}: "--ro", {"mounts", 0}: "--mount", {"scratch", -1}: "--scratch",
	} {
		if got := made.sources[key].text; got != want {
			t.Errorf("%v comes from %q, want %q", key, got, want)
		}
	}
}

// The preset hands on no name that makes a program load code.
func TestEnvAllowLoadsNoCode(t *testing.T) {
	for _, name := range presetEnv() {
		for _, bad := range []string{"LD_", "DYLD_", "BASH_ENV", "ENV", "NODE_", "PYTHON", "PERL", "RUBY", "GCONV_PATH", "GODEBUG"} {
			if strings.HasPrefix(name, bad) {
				t.Errorf("%s is allowed", name)
			}
		}
		if strings.HasPrefix(name, "GIT_") && !slices.Contains(identityNames, name) {
			t.Errorf("%s is allowed", name)
		}
	}
	if !slices.Contains(presetEnv(), "PATH") {
		t.Error("PATH is not allowed: the list is not what this test looks at")
	}
}

func scratchAt(scratch string, o options) task {
	return task{o: o, policy: protocol.Policy{Scratch: scratch}}
}

func TestEnvironment(t *testing.T) {
	environ := []string{"PATH=/bin", "LANG=x", "SECRET=s", "LD_PRELOAD=l", "HOME=/home/ann", "TOKEN=t", "GIT_AUTHOR_NAME=From Env", "TMPDIR=/x"}
	identity := parseIdentity("user.name\nOld\x00user.email\na@example.org\x00user.name\nAnn\x00")
	got := scratchAt(protocol.ScratchTmpfs, options{env: []string{"TOKEN", "MADE=up", "ABSENT"}}).environment(environ, identity)
	want := map[string]string{
		"PATH": "/bin", "LANG": "x", "HOME": "/tmp", "TOKEN": "t", "MADE": "up",
		"GIT_AUTHOR_NAME": "From Env", "GIT_COMMITTER_NAME": "Ann", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_EMAIL": "a@example.org",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if got := scratchAt("/s", options{}).environment(environ, nil)["HOME"]; got != "/s" {
		t.Errorf("HOME with a scratch of the host: %s", got)
	}
}

func TestLaunchCode(t *testing.T) {
	cases := []struct {
		code protocol.Code
		msg  string
		want int
	}{
		{protocol.CodeSpawnFailed, `exec: "x" not found in the jail: looked in 5 directories of PATH (ENOENT)`, exitNotFound},
		{protocol.CodeSpawnFailed, `exec: "/x" does not exist in the jail (ENOENT)`, exitNotFound},
		{protocol.CodeSpawnFailed, `exec: "/etc/passwd" is not executable: mode 0644 (EACCES)`, exitCannotRun},
		{protocol.CodeSpawnFailed, `exec: cannot execute "./s": no such file or directory (ENOENT); its interpreter ...`, exitNotFound},
		{protocol.CodeSpawnFailed, `exec: "a (ENOENT) \"(ENOENT)" is a directory (EISDIR)`, exitCannotRun},
		{protocol.CodeSpawnFailed, `exec: without parentheses`, exitCannotRun},
		{protocol.CodeSpawnFailed, `bwrap: "x" not found in the jail`, exitFailed},
		{protocol.CodeSpawnFailed, `stage2: chdir: cannot change to "/x" (ENOENT)`, exitFailed},
		{protocol.CodeRefused, `exec: "x" not found in the jail`, exitFailed},
	}
	for _, c := range cases {
		if got := launchCode(&broker.Error{Code: c.code, Msg: c.msg}); got != c.want {
			t.Errorf("%s %s: got %d, want %d", c.code, c.msg, got, c.want)
		}
	}
}

func TestMessagesDriveNoTerminal(t *testing.T) {
	if got := printable("a\x1b[31mb\u009bc\u202ed é\n"); got != "a?[31mb?c?d é?" {
		t.Errorf("got %q", got)
	}
}
