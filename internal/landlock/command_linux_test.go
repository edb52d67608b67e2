package landlock

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/stage2/spec"
	"sandboxd/internal/testenv"
)

// commandPlan is what a policy with one writable and one readable root plans.
func commandPlan(root string) plan.Plan {
	ops := []plan.Op{{Path: "/", Class: plan.RootTmpfs}}
	for _, path := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/opt"} {
		if target, err := filepath.EvalSymlinks(path); err == nil && target == path {
			ops = append(ops, plan.Op{Path: path, Class: plan.SystemRO})
		}
	}
	return plan.Plan{Ops: append(ops,
		plan.Op{Path: root + "/ro", Class: plan.Readable, Node: host.Node{Kind: host.Dir}},
		plan.Op{Path: root + "/rw", Class: plan.Writable, Node: host.Node{Kind: host.Dir}},
		plan.Op{Path: "/tmp", Class: plan.ScratchTmpfs},
		plan.Op{Path: "/proc", Class: plan.Proc}, plan.Op{Path: "/dev", Class: plan.Dev})}
}

// shell runs a script in the fixture under the rules that Rules makes.
func shell(t *testing.T, u testenv.User, root string, s *spec.Landlock, script string) (string, error) {
	t.Helper()
	cmd := exec.Command(selfPath, "-c", script)
	cmd.Env = []string{roleVar + "=shell", "PATH=/usr/bin:/bin"}
	if s != nil {
		text, err := json.Marshal(s)
		must(t, err)
		cmd.Env = append(cmd.Env, specVar+"="+string(text))
	}
	cmd.Dir = root + "/rw"
	out, err := testenv.As(t, cmd, u).CombinedOutput()
	return string(out), err
}

// Real shells, with pipes, here-documents, process substitution and terminals, need
// no more than the rules give.
func TestShellUnderRules(t *testing.T) {
	abi := kernelABI(t)
	const works = `set -e
cat /etc/passwd >/dev/null; cat ../ro/f; echo y >f; mkdir -p d/e; mv a/f d/e/g; ln d/e/g d/h; rm d/h
cat < <(echo sub) >/dev/null; cat <<< here >/dev/null; head -c 8 /dev/urandom >/dev/null
grep -q MemTotal /proc/meminfo; ls -l /proc/self/exe >/dev/null; find . >/dev/null; echo fine`
	const escapes = `echo z >../out/f && echo WROTE-out; echo z >../ro/f && echo WROTE-ro; ls /root >/dev/null && echo ROOT
echo z >/var/tmp/landlock-test-$$ && rm /var/tmp/landlock-test-$$ && echo WROTE-tmp
cat ../out/f && echo READ-out; ls /proc >/dev/null && echo PROC; : </dev/tty; ls /dev/shm >/dev/null && echo SHM; echo end`
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, jailed := range []bool{true, false} {
			root := fixture(t, u)
			s := Rules(commandPlan(root), Options{ABI: abi, Jailed: jailed})
			if jailed { // no mounts here: /tmp is the host's
				s.Rules = withoutPath(s.Rules, "/tmp")
			}
			if abi == 1 {
				continue // mv across directories
			}
			out, err := shell(t, u, root, &s, works)
			if err != nil || !strings.HasSuffix(out, "fine\n") {
				t.Errorf("jailed %v: %v: %s", jailed, err, out)
			}
			out, _ = shell(t, u, root, &s, escapes)
			if !strings.HasSuffix(out, "end\n") || strings.Contains(out, "WROTE") {
				t.Errorf("jailed %v: %s", jailed, out)
			}
			for _, word := range []string{"READ-out", "PROC", "SHM"} {
				if strings.Contains(out, word) != jailed {
					t.Errorf("jailed %v, %s: %s", jailed, word, out)
				}
			}
			control, _ := shell(t, u, fixture(t, u), nil, escapes)
			for _, word := range []string{"WROTE-out", "WROTE-ro", "WROTE-tmp", "READ-out", "PROC", "SHM"} {
				if !strings.Contains(control, word) {
					t.Errorf("the control did not do %s: %s", word, control)
				}
			}
		}
	})
}

func withoutPath(rules []spec.Rule, path string) (kept []spec.Rule) {
	for _, r := range rules {
		if r.Path != path {
			kept = append(kept, r)
		}
	}
	return kept
}

// Python's semaphores and openpty, under the devices of a jail.
func TestPythonDevices(t *testing.T) {
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		testenv.Skip(t, "tool:python3", err.Error())
	}
	abi := kernelABI(t)
	const script = `/usr/bin/python3 -c 'import multiprocessing, os
multiprocessing.Lock(); m, s = os.openpty(); os.ttyname(s); print("fine")'`
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		for _, jailed := range []bool{true, false} {
			root := fixture(t, u)
			s := Rules(commandPlan(root), Options{ABI: abi, Jailed: jailed})
			out, err := shell(t, u, root, &s, script)
			if (err == nil && strings.HasSuffix(out, "fine\n")) != jailed {
				t.Errorf("jailed %v: %v: %s", jailed, err, out)
			}
		}
	})
}
