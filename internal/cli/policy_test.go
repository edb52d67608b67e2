package cli

import (
	"maps"
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

func TestWorkspacePolicy(t *testing.T) {
	o, err := parseRun(strings.Fields("--rw sub --ro ../lib --mount s.sock:rw --scratch scratch --env EXTRA -- x"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := build(o, "/w", "/w/in", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := made.policy
	if !slices.Equal(p.WritableRoots, []string{"/w", "/w/in/sub"}) || !slices.Equal(p.ReadableRoots, []string{"/w/lib"}) ||
		p.Mounts[0].Path != "/w/in/s.sock" || p.Scratch != "/w/in/scratch" || p.Network.Mode != protocol.NetOff {
		t.Errorf("got %+v", p)
	}
	if p.Limits != (protocol.Limits{OutputBytes: defaultOutput}) {
		t.Errorf("limits: %+v", p.Limits)
	}
	if !slices.IsSorted(p.EnvAllow) || !slices.Contains(p.EnvAllow, "EXTRA") {
		t.Errorf("env_allow: %q", p.EnvAllow)
	}
}

// The preset hands on no name that makes a program load code.
func TestEnvAllowLoadsNoCode(t *testing.T) {
	for _, name := range envAllow(options{}) {
		for _, bad := range []string{"LD_", "DYLD_", "BASH_ENV", "ENV", "NODE_", "PYTHON", "PERL", "RUBY", "GCONV_PATH", "GODEBUG"} {
			if strings.HasPrefix(name, bad) {
				t.Errorf("%s is allowed", name)
			}
		}
		if strings.HasPrefix(name, "GIT_") && !slices.Contains(identityNames, name) {
			t.Errorf("%s is allowed", name)
		}
	}
	if !slices.Contains(envAllow(options{}), "PATH") {
		t.Error("PATH is not allowed: the list is not what this test looks at")
	}
}

func scratchAt(scratch string) preset { return preset{policy: protocol.Policy{Scratch: scratch}} }

func TestEnvironment(t *testing.T) {
	environ := []string{"PATH=/bin", "LANG=x", "SECRET=s", "LD_PRELOAD=l", "HOME=/home/ann", "TOKEN=t", "GIT_AUTHOR_NAME=From Env", "TMPDIR=/x"}
	identity := parseIdentity("user.name\nOld\x00user.email\na@example.org\x00user.name\nAnn\x00")
	got := environment(options{env: []string{"TOKEN", "MADE=up", "ABSENT"}}, environ, scratchAt(protocol.ScratchTmpfs), identity)
	want := map[string]string{
		"PATH": "/bin", "LANG": "x", "HOME": "/tmp", "TOKEN": "t", "MADE": "up",
		"GIT_AUTHOR_NAME": "From Env", "GIT_COMMITTER_NAME": "Ann", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_EMAIL": "a@example.org",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if got := environment(options{}, environ, scratchAt("/s"), nil)["HOME"]; got != "/s" {
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
		{protocol.CodeSpawnFailed, `exec: cannot execute "./s": no such file or directory (ENOENT); its interpreter ...`, exitCannotRun},
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
