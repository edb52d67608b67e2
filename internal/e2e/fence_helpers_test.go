//go:build linux

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
)

// fenced is what `sandboxd run` gave.
type fenced struct {
	out, messages string // the command's stdout; stderr of both
	code          int
}

// fenceEnv is a person's environment: HOME below the site, no cache moved.
func (s *site) fenceEnv(more ...string) []string {
	env := []string{"PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "HOME=" + s.home(), "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"}
	return append(env, more...)
}

func (s *site) home() string { return s.mkdir("home") }

// run is `sandboxd run ARGS -- sh -c SCRIPT` in the workspace, as the site's user.
func (s *site) run(env []string, script string, args ...string) fenced {
	s.t.Helper()
	return s.sandboxd(env, append(append([]string{"run"}, args...), "--", "sh", "-c", script)...)
}

func (s *site) sandboxd(env []string, args ...string) fenced {
	s.t.Helper()
	requireFence(s.t)
	cmd := exec.Command(testenv.Binary(s.t), args...)
	cmd.Dir = s.ws
	testenv.As(s.t, cmd, s.u)
	cmd.Env = env
	var out, messages strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &messages
	var ee *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ee) {
		s.t.Fatal(err)
	}
	return fenced{out.String(), messages.String(), cmd.ProcessState.ExitCode()}
}

// good is a run that must succeed.
func (s *site) good(env []string, script string, args ...string) fenced {
	s.t.Helper()
	r := s.run(env, script, args...)
	if r.code != 0 {
		s.t.Fatalf("exit %d\n%s\n%s", r.code, r.out, r.messages)
	}
	return r
}

// requireFence steps aside where there is no jail, unless SANDBOXD_FENCE_REQUIRED=1
// says that such a pass would prove nothing.
func requireFence(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/usr/bin/bwrap"); err == nil {
		return
	}
	if os.Getenv("SANDBOXD_FENCE_REQUIRED") == "1" {
		t.Fatal("the write fence is required here, and there is no bubblewrap")
	}
	testenv.Skip(t, "bwrap", "scripts/setup run installs bubblewrap")
}

// fenceTool is a tool of a build: missing, it is a skip, or fatal as above.
func fenceTool(t *testing.T, name string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil && os.Getenv("SANDBOXD_FENCE_REQUIRED") == "1" {
		t.Fatalf("%s is required here: %v", name, err)
	}
	return testenv.Tool(t, name)
}

// outside lists places beside what is granted, below HOME: a shell script that says
// for each whether it could be written.
const outside = try + `
for f in .bashrc .cargo/bin/x .cargo/config.toml .gradle/init.d/x go/src/x go/bin/x .local/bin/x .ssh/authorized_keys .cache/x; do
	try "$f" "echo x >>$HOMEDIR/$f"
done
`

// outsideDirs makes the directories of outside, so that only the fence denies.
func (s *site) outsideDirs() {
	for _, dir := range []string{".cargo/bin", ".cargo/registry", ".cargo/git", ".gradle/init.d", ".gradle/caches", "go/src", "go/bin", "go/pkg/mod", "go/pkg/sumdb",
		".local/bin", ".ssh", ".cache/go-build", ".cache/pip", ".cache/ccache", ".npm/_cacache", ".npm/_logs"} {
		s.mkdir("home/" + dir)
	}
	s.write("home/.bashrc", "")
}

// noneOutside checks that every line of outside says no.
func (s *site) noneOutside(env []string, preset string) {
	s.t.Helper()
	script := "HOMEDIR=" + s.home() + "\n" + outside
	r := s.run(env, script, "--preset", preset)
	if strings.Contains(r.out, " yes") || strings.Count(r.out, " no\n") != 9 {
		s.t.Errorf("%s: outside the fence:\n%s%s", preset, r.out, r.messages)
	}
}

// meAtHome is the caller, whose own toolchains a test may use.
func meAtHome() testenv.User { return testenv.Me() }
