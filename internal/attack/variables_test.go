//go:build linux

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// environment prints its environment, a line each: "@env".
func environment([]string) int {
	for _, v := range os.Environ() {
		fmt.Println(v)
	}
	return 0
}

// loaders are variables by which a program, a shell, a tool or the C library loads
// code, changes what it runs, or finds somebody's agent.
var loaders = []string{
	"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_DEBUG_OUTPUT", "LD_PROFILE", "GCONV_PATH", "LOCPATH", "NLSPATH", "LC_ALL",
	"GODEBUG", "GOTRACEBACK", "GOFLAGS", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "IFS", "CDPATH", "SHELLOPTS",
	"GIT_DIR", "GIT_CONFIG_COUNT", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_EXEC_PATH", "GIT_PROXY_COMMAND", "GIT_ASKPASS", "GIT_PAGER",
	"PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "CLASSPATH",
	"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "GPG_AGENT_INFO",
	"SANDBOXD_CGROUP_BASE", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HTTP_PROXY", "MAIL", "EDITOR",
}

// What a broker asks for reaches a command only if the policy allows the name, and
// what the helper itself was started with never does, nor the variable of a loader
// that would act before the command.
func TestVariables(t *testing.T) {
	u := testenv.Ordinary(t)
	s := newScene(t, u, nil)
	value := "value-" + s.Nonce
	own := []string{}
	harmless := slices.DeleteFunc(slices.Clone(loaders), func(n string) bool {
		// These act on the helper as they would on any program: it is its operator's.
		return strings.HasPrefix(n, "LD_") || n == "GODEBUG" || n == "SANDBOXD_CGROUP_BASE"
	})
	for _, name := range harmless {
		own = append(own, name+"=own-"+value)
	}
	ask := func(h *helper, id uint64, allow []string) string {
		p := s.policy(nil)
		p.EnvAllow = append(p.EnvAllow, allow...)
		b := s.start(s.program(), "@env")
		b.Policy = p.Append(nil)
		for _, name := range loaders {
			b.Env[name] = value
		}
		r := h.run(id, b)
		if r.exit == nil || r.exit.Code != 0 {
			t.Fatalf("%+v %+v %s", r.exit, r.fail, r.stderr)
		}
		return "\n" + r.stdout
	}
	h := start(t, u, s.policy(nil), own)
	h.greet()
	granted, jailed := ask(h, 2, loaders), ask(h, 3, nil)
	for _, name := range loaders {
		if !strings.Contains(granted, "\n"+name+"="+value+"\n") {
			t.Errorf("%s: the control fails: what the policy allows does not arrive", name)
		}
		if strings.Contains(jailed, "\n"+name+"=") {
			t.Errorf("%s: it got in", name)
		}
	}
	if strings.Contains(granted+jailed, "own-"+value) {
		t.Error("a variable of the helper got in")
	}
}

// An allowed variable acts on the command and on nothing that runs before it.
func TestVariablesActOnTheCommandAlone(t *testing.T) {
	u := testenv.Ordinary(t)
	s := newScene(t, u, nil)
	h := start(t, u, s.policy(nil), nil)
	h.greet()
	for n, x := range []struct {
		name, value string
		argv        []string
		shown       string // what it makes the command print, once
	}{
		{"GODEBUG", "inittrace=1", []string{s.program(), "@env"}, "init os @"},
		{"LD_PRELOAD", "/absent-" + s.Nonce + ".so", []string{"/bin/true"}, "/absent-" + s.Nonce + ".so"},
		{"LD_DEBUG", "statistics", []string{"/bin/true"}, "total startup time"},
		{"BASH_ENV", s.Base + "/ro/bash-env", []string{"/bin/bash", "-c", "true"}, "from BASH_ENV"},
	} {
		ok(t, os.WriteFile(s.Base+"/ro/bash-env", []byte("echo from BASH_ENV >&2\n"), 0o644))
		p := s.policy(nil)
		p.EnvAllow = append(p.EnvAllow, x.name)
		b := s.start(x.argv...)
		b.Policy, b.Env[x.name] = p.Append(nil), x.value
		r := h.run(uint64(2+n), b)
		if r.exit == nil || r.exit.Code != 0 {
			t.Errorf("%s: %+v %+v %s", x.name, r.exit, r.fail, r.stderr)
		}
		if got := strings.Count(r.stderr, x.shown); got != 1 {
			t.Errorf("%s: %d programs took it, expected the command alone: %s", x.name, got, r.stderr)
		}
	}
}

// A program in the workspace is never found by its bare name, however PATH is spelled.
func TestPlantedPrograms(t *testing.T) {
	u := testenv.Ordinary(t)
	s := newScene(t, u, nil)
	ws := filepath.Join(s.Base, "ws")
	ok(t, os.WriteFile(ws+"/planted", []byte("#!/bin/sh\necho planted\n"), 0o755), os.Symlink(ws, s.Base+"/ro/link"))
	s.own()
	h := start(t, u, s.policy(nil), []string{"PATH=" + ws + ":" + os.Getenv("PATH")})
	h.greet()
	if r := h.run(2, s.start(ws+"/planted")); r.stdout != "planted\n" {
		t.Fatalf("the control: %+v %+v", r.exit, r.fail)
	}
	for n, path := range []string{
		ws, ws + "/", "//" + ws, ws + "/.", ws + "/../ws", s.Base + "/ro/link", ".", "", ":", "../ws", "/proc/self/cwd", "/proc/self/root" + ws,
		"/proc/thread-self/cwd", "/dev/fd/../cwd", "/tmp", "~", "$PWD",
	} {
		b := s.start("planted")
		b.Env["PATH"] = path
		r := h.run(uint64(10+n), b)
		if r.fail == nil || r.fail.Code != protocol.CodeSpawnFailed || !strings.Contains(r.fail.Msg, "ENOENT") {
			t.Errorf("PATH=%q: %+v %+v %s", path, r.exit, r.fail, r.stdout)
		}
		b.Argv = []string{"/bin/sh", "-c", "planted"}
		if r := h.run(uint64(100+n), b); r.exit == nil || strings.Contains(r.stdout, "planted\n") {
			t.Errorf("PATH=%q in a shell: %+v %+v %s", path, r.exit, r.fail, r.stdout)
		}
	}
}

// The helper runs no bubblewrap but a trusted one, and stage 2 is its own image or what that carries,
// whatever a command put into its place on disk.
func TestPlantedHelper(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		s := newScene(t, u, nil)
		ws := filepath.Join(s.Base, "ws")
		image, err := os.ReadFile(testenv.Binary(t))
		ok(t, err, os.WriteFile(ws+"/sandboxd", image, 0o755), os.WriteFile(ws+"/forged", []byte("#!/bin/sh\n: >"+ws+"/forgery-ran\n"), 0o755))
		ok(t, os.WriteFile(ws+"/bwrap", []byte("#!/bin/sh\n: >"+ws+"/forgery-ran\n"), 0o755))
		s.own()
		h := startBinary(t, ws+"/sandboxd", u, s.policy(nil), []string{"PATH=" + ws + ":" + os.Getenv("PATH")})
		h.greet()
		if r := h.run(2, s.start("/bin/sh", "-c", "cp forged new && mv new sandboxd && cat sandboxd")); r.exit == nil || r.exit.Code != 0 || !strings.Contains(r.stdout, "forgery-ran") {
			t.Fatalf("the helper's file is not replaced: %+v %+v %s", r.exit, r.fail, r.stderr)
		}
		want := h.run(3, s.start("/bin/true"))
		if want.exit == nil || want.exit.Code != 0 || !slices.ContainsFunc(want.exit.Enforcement, func(e string) bool { return strings.HasPrefix(e, "seccomp") }) {
			t.Errorf("got %+v %+v", want.exit, want.fail)
		}
		if _, err := os.Stat(ws + "/forgery-ran"); err == nil {
			t.Error("what the command planted ran")
		}
		for _, planted := range []string{"/sandboxd", "/bwrap"} { // the control
			_ = os.Remove(ws + "/forgery-ran")
			if err := testenv.As(t, exec.Command(ws+planted), u).Run(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(ws + "/forgery-ran"); err != nil {
				t.Error("the control: the planted program does nothing")
			}
		}
	})
}
