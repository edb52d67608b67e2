//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

func TestRunsACommand(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		dir := testenv.TempDir(t, u)
		c := connect(t, u, basePolicy(dir))
		r := c.sh(2, dir, `echo hi; echo oops >&2; touch made; id -u; ls /`)
		if !strings.HasPrefix(r.stdout, "hi\n") || r.stderr != "oops\n" {
			t.Errorf("got %q and %q", r.stdout, r.stderr)
		}
		if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
			t.Errorf("the workspace is not writable: %v", err)
		}
		if strings.Contains(r.stdout, "\nroot\n") || !strings.Contains(r.stdout, "\nusr\n") {
			t.Errorf("the view is not the base view: %q", r.stdout)
		}
		for _, tag := range []string{"bwrap", "mounts", "seccomp-net", "seccomp-hardening", "no-new-privs"} {
			if !has(r.exit.Enforcement, tag) {
				t.Errorf("%s is not in the report: %q", tag, r.exit.Enforcement)
			}
		}
		if r.exit.Degraded {
			t.Error("degraded with bubblewrap there")
		}
		c.send(3, protocol.Shutdown{})
		if code := c.wait(); code != 0 {
			t.Errorf("exit %d after shutdown: %s", code, c.stderr)
		}
	})
}

// A command sees no descriptor but its three, no capability, and only the
// environment that was constructed.
func TestWhatACommandIsGiven(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		dir := testenv.TempDir(t, u)
		c := connect(t, u, basePolicy(dir))
		r := c.sh(2, dir, `ls /proc/self/fd; grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status`)
		want := []string{"0", "1", "2", "3", // 3 is ls's own directory
			"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
			"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"}
		if got := strings.Split(strings.TrimSpace(r.stdout), "\n"); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("got %q", got)
		}
		c.start(3, dir, "cat", "/proc/self/environ")
		r = c.collect(3)
		r.stdout = strings.ReplaceAll(r.stdout, "\x00", "\n")
		for _, name := range []string{"PATH=", "HOME=/tmp", "LANG=C.UTF-8", "SANDBOXD_SCRATCH_DIR=/tmp", "TMPDIR=/tmp"} {
			if !strings.Contains(r.stdout, name) {
				t.Errorf("%s is missing in %q", name, r.stdout)
			}
		}
		if n := strings.Count(r.stdout, "\n"); n != 5 {
			t.Errorf("%d variables: %q", n, r.stdout)
		}
		r = c.try(4, dir, `cat /proc/1/cmdline /proc/1/environ | tr '\0' '\n'; true`)
		if strings.Contains(r.stdout, dir) || strings.Contains(r.stdout, "HOME") {
			t.Errorf("pid 1 shows the policy or an environment: %q", r.stdout)
		}
	})
}

func TestToolsWork(t *testing.T) {
	scripts := map[string]string{
		"git":     `git init -q r && cd r && git config user.email a@b && git config user.name n && echo x >f && git add f && git commit -qm m && git log --oneline | grep -q m`,
		"gcc":     `printf 'int main(void){return 0;}' >a.c && gcc -o a a.c && ./a`,
		"make":    `printf 'all:\n\techo made\n' >Makefile && make -s | grep -q made`,
		"python3": `/usr/bin/python3 -c 'import multiprocessing,pty,tempfile,os; multiprocessing.Lock(); pty.openpty(); tempfile.mkstemp()'`,
		"venv":    `/usr/bin/python3 -m venv --without-pip v && v/bin/python -c pass`,
		"node":    `node -e 'require("fs").writeFileSync("n","1")' && test -f n`,
		"mktemp":  `f=$(mktemp) && echo x >"$f"`,
		"rename":  `mkdir d e && echo x >d/f && mv d/f e/f && mv e d/e && cat d/e/f`,
		"devices": `: >/dev/null; head -c 8 /dev/urandom | wc -c; echo x >/dev/shm/f`,
	}
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for name, script := range scripts {
			t.Run(name, func(t *testing.T) {
				needTool(t, name)
				dir := testenv.TempDir(t, u)
				connect(t, u, basePolicy(dir)).sh(2, dir, script)
			})
		}
	})
}

// needTool skips where the host has no such program in the base view.
func needTool(t *testing.T, name string) {
	t.Helper()
	tool, ok := map[string]string{"git": "git", "gcc": "gcc", "make": "make", "python3": "/usr/bin/python3",
		"venv": "/usr/bin/python3", "node": "node"}[name]
	if !ok {
		return
	}
	if path, err := exec.LookPath(tool); err != nil || !strings.HasPrefix(path, "/usr/") {
		testenv.Skip(t, "tool:"+name, "not installed below /usr")
	}
}

// Once in the command's environment and nowhere else.
func TestLoaderVariablesStayInside(t *testing.T) {
	needTool(t, "gcc")
	u := testenv.Me()
	u.Home = testenv.TempDir(t, u)
	dir := testenv.TempDir(t, u)
	p := basePolicy(dir)
	p.EnvAllow = append(p.EnvAllow, "LD_PRELOAD", "GODEBUG", "BASH_ENV")
	src := `#include <unistd.h>
#include <fcntl.h>
__attribute__((constructor)) static void f(void){int d=open("` + dir + `/loaded",O_CREAT|O_WRONLY|O_APPEND,0666);char b[64];int n=readlink("/proc/self/exe",b,63);b[n]='\n';write(d,b,n+1);}`
	write(t, dir+"/p.c", src)
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", dir+"/p.so", dir+"/p.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := connect(t, u, p)
	c.send(2, protocol.ExecStart{Argv: []string{"/bin/true"}, Cwd: dir, Token: []byte("t"),
		Env: map[string]string{"LD_PRELOAD": dir + "/p.so", "GODEBUG": "inittrace=1", "BASH_ENV": dir + "/p.c"}})
	r := c.collect(2)
	if r.exit == nil || r.exit.Code != 0 {
		t.Fatalf("got %+v %+v", r.exit, r.fail)
	}
	b, err := os.ReadFile(dir + "/loaded")
	if err != nil {
		t.Fatalf("the control failed: the command did not load it: %v", err)
	}
	for _, line := range strings.Fields(string(b)) {
		if filepath.Base(line) != "true" {
			t.Errorf("loaded by %q", line)
		}
	}
	if strings.Contains(r.stderr, "init ") || strings.Contains(c.stderr.String(), "init ") {
		t.Errorf("GODEBUG reached sandboxd: %q %q", r.stderr, c.stderr)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A planted link on PATH is left out and refuses nothing; a directory that the
// command can write never comes onto PATH.
func TestPlantedPath(t *testing.T) {
	u := testenv.Ordinary(t)
	dir := testenv.TempDir(t, u)
	c := connect(t, u, basePolicy(dir))
	c.sh(2, dir, "mkdir bin; ln -s /usr/bin planted")
	c.send(3, protocol.ExecStart{Argv: []string{"env"}, Cwd: dir, Token: []byte("t"),
		Env: map[string]string{"PATH": dir + "/planted:" + dir + "/bin:/usr/bin"}})
	r := c.collect(3)
	if r.exit == nil || r.exit.Code != 0 {
		t.Fatalf("got %+v, %+v", r.exit, r.fail)
	}
	if !strings.Contains(r.stdout, "PATH=/usr/bin") || strings.Contains(r.stdout, dir) {
		t.Errorf("got %q", r.stdout)
	}
}

// A hard limit of 0 for core files would let a crash start the host's handler of
// core_pattern. A helper with the right to lift it does; the command gets 1 as ever.
func TestCoreLimitOfTheHelper(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		m := jailed(t, u)
		cmd := exec.Command("sh", "-c", `ulimit -Hc 0; exec "$@"`, "sh", testenv.Binary(t))
		c := m.spawnCmd(cmd, m.policy())
		c.greet()
		want := "Max core file size 0 0 bytes\n" // what nobody has the right to raise
		if u.UID == 0 && mayRaise(t) {
			want = "Max core file size 1 1 bytes\n"
		}
		if r := c.sh(2, m.dir, "grep core /proc/self/limits | tr -s ' '"); strings.TrimRight(r.stdout, " \n")+"\n" != want {
			t.Errorf("got %q, %q", r.stdout, r.stderr)
		}
	})
}

// mayRaise says whether this process may raise hard limits: a container's root may not.
func mayRaise(t *testing.T) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
	return sets[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
