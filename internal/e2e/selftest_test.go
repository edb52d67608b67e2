//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/landlock"
	"sandboxd/internal/selftest"
	"sandboxd/internal/testenv"
)

// Every probe, as root and as an ordinary user, leaving nothing behind. Where the kind
// of host is named, testdata/enforcement says which must be ENFORCED.
func TestSelfTest(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		needBwrap(t, u)
		dir := fixtureDir(t, u)
		testenv.NoNewChildren(t)
		r := selfTest(t, u, testenv.Binary(t), "self-test", "--dir", dir)
		for _, f := range r.Probes {
			if f.Verdict == selftest.Failed {
				t.Errorf("%s: %s", f.Probe, f.Reason)
			}
			if f.Verdict == selftest.Skipped && (f.Reason == "" || len(f.Missing) == 0) {
				t.Errorf("%s is skipped without a reason", f.Probe)
			}
		}
		if len(r.Probes) != len(selftest.Probes("linux")) || r.code != 0 {
			t.Errorf("%d probes, exit code %d", len(r.Probes), r.code)
		}
		// What needs nothing but bubblewrap must be enforced wherever it works.
		for _, probe := range []string{"protected-file", "protected-missing", "state-dir", "environment", "planted-link", "setsid", "term-ignored", "hostile-native"} {
			if f := r.finding(t, probe); f.Verdict != selftest.Enforced {
				t.Errorf("%s: %s %s", probe, f.Verdict, f.Reason)
			}
		}
		provable(t, u, r)
		compareWithHost(t, r)
		nothingLeft(t, dir)
	})
}

// provable demands that what the witness can do here by itself is not given up as
// unprovable in the run.
func provable(t *testing.T, u testenv.User, r selfTestRun) {
	t.Helper()
	ways := []string{"inet6", "netlink", "vsock", "int80", "x32", "io_uring"}
	cmd := exec.Command(testenv.Binary(t), append([]string{"--probe-socket", "n", "-"}, ways...)...)
	testenv.As(t, cmd, u)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	f := r.finding(t, "sockets")
	for _, way := range ways {
		works := strings.Contains(string(out), "\n"+way+" ok")
		if unproven := strings.Contains(f.Note, way+" ("); f.Verdict == selftest.Enforced && works == unproven {
			t.Errorf("%s: works %t, not provable %t: %s", way, works, unproven, f.Note)
		}
	}
}

// compareWithHost holds a run against testdata/enforcement/HOST.txt.
func compareWithHost(t *testing.T, r selfTestRun) {
	t.Helper()
	host := os.Getenv(testenv.HostEnv)
	if host == "" {
		return
	}
	b, err := os.ReadFile(filepath.Join(testenv.Root(t), "testdata", "enforcement", host+".txt"))
	if err != nil {
		t.Fatalf("a %s host has no list of what it enforces: %v", host, err)
	}
	lines := 0
	for _, line := range strings.Split(string(b), "\n") {
		line, _, _ = strings.Cut(line, "#")
		want := strings.Fields(line)
		if len(want) < 2 {
			continue
		}
		lines++
		f := r.finding(t, want[0])
		allowed := f.Verdict == selftest.Enforced ||
			f.Verdict == selftest.Skipped && slices.ContainsFunc(want[2:], func(tag string) bool { return slices.Contains(f.Missing, tag) })
		if !allowed {
			t.Errorf("%s is %s on a %s host, which promises %q: %s", f.Probe, f.Verdict, host, want[1:], f.Reason)
		}
	}
	if lines != len(r.Probes) {
		t.Errorf("%d lines for %d probes", lines, len(r.Probes))
	}
}

// A bubblewrap that makes no jail, or another one than it was told: nothing can be
// run, and that is no pass.
func TestSelfTestWithoutAJail(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		needBwrap(t, u)
		for mode, why := range map[string]string{
			"exit1": "", "last": "namespace is the helper's own", "nonet": "net namespace", "nopid": "pid namespace",
			"caps": "capabilities", "userns": "user namespace can be made",
			"host": "mounted writable", "rw": "mounted writable",
			"extra": `"/extra" is mounted and in no plan`, "below": `"/usr/share" is mounted and in no plan`, "over": `"/usr" is mounted over`,
		} {
			if mode == "caps" && u.UID != 0 {
				continue // bubblewrap leaves an ordinary user none in any case
			}
			t.Run(mode, func(t *testing.T) {
				r := selfTest(t, u, testenv.Binary(t), "self-test", "--bwrap", fakeBwrap(t, mode))
				if got := r.enforced(); len(got) > 0 || r.Result != selftest.NotRun || r.code != 3 || r.Reason == "" || !strings.Contains(r.Reason, why) {
					t.Errorf("enforced %q, %s (%s), exit code %d", got, r.Result, r.Reason, r.code)
				}
			})
		}
	})
}

// One that leaves the masks out. A caller who is root has masks in every view, so that
// nothing runs; for another one the probes of masks fail one by one.
func TestSelfTestWithoutMasks(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		needBwrap(t, u)
		broken := []string{"protected-file", "protected-dir", "protected-missing", "state-dir", "hostile-native"}
		r := selfTest(t, u, testenv.Binary(t), "self-test", "--bwrap", fakeBwrap(t, "nomasks"), "--only", strings.Join(broken, ","))
		if got := r.enforced(); len(got) > 0 || r.code == 0 || (r.Result != selftest.AnyFailed && r.Result != selftest.NotRun) {
			t.Errorf("enforced %q, %s, exit code %d: %s", got, r.Result, r.code, r.text)
		}
	})
}

// A layer that the kernel does not have: its probes are skips, never ENFORCED, and
// with --require the run fails.
func TestSelfTestWithALayerOff(t *testing.T) {
	u := testenv.Ordinary(t)
	needBwrap(t, u)
	for name, c := range map[string]struct {
		errno   syscall.Errno
		call    int
		require string
		skipped []string
	}{
		"landlock": {syscall.EOPNOTSUPP, unix.SYS_LANDLOCK_CREATE_RULESET, "landlock", []string{"fence-abstract-socket", "fence-path-socket"}},
		"seccomp":  {syscall.ENOSYS, unix.SYS_SECCOMP, "seccomp-net", []string{"sockets", "kernel-interfaces"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := denied(t, u, c.errno, strconv.Itoa(c.call), "--require", c.require,
				"--only", strings.Join(append(c.skipped, "protected-file"), ","))
			for _, probe := range c.skipped {
				if f := r.finding(t, probe); f.Verdict != selftest.Skipped || !strings.Contains(f.Reason, name) {
					t.Errorf("%s: %s %s", probe, f.Verdict, f.Reason)
				}
			}
			if f := r.finding(t, "protected-file"); f.Verdict != selftest.Enforced {
				t.Errorf("what needs no %s: %+v", name, f)
			}
			if r.Failed > 0 || r.code != 1 || !slices.Contains(r.Required, c.require) {
				t.Errorf("%d failed, exit code %d, required %q: %s", r.Failed, r.code, r.Required, r.text)
			}
		})
	}
}

// A kernel whose calls succeed and do nothing. What stage 2 notices by itself runs
// nothing, or is done by another call; where the report claims the layer, the probe of it
// fails.
func TestSelfTestWithAFakedLayer(t *testing.T) {
	u := testenv.Ordinary(t)
	needBwrap(t, u)
	if abi, err := landlock.ABI(); abi < 6 {
		testenv.Skip(t, "landlock-scope", fmt.Sprintf("ABI %d: %v", abi, err))
	}
	const noRuleset = "!4294967295" // by which stage 2 finds out whether the kernel is asked
	for name, c := range map[string]struct {
		call   string
		probes []string
		found  selftest.Verdict // "": nothing runs
		code   int
	}{
		"landlock_restrict_self":              {strconv.Itoa(unix.SYS_LANDLOCK_RESTRICT_SELF), []string{"fence-abstract-socket", "init"}, "", 3},
		"landlock_restrict_self, but for one": {strconv.Itoa(unix.SYS_LANDLOCK_RESTRICT_SELF) + noRuleset, []string{"fence-abstract-socket", "init"}, selftest.Failed, 1},
		"close_range":                         {strconv.Itoa(unix.SYS_CLOSE_RANGE), []string{"descriptors"}, selftest.Enforced, 0},
		"prlimit64":                           {strconv.Itoa(unix.SYS_PRLIMIT64), []string{"file-size"}, "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := denied(t, u, 0, c.call, "--only", strings.Join(append(c.probes, "environment"), ","))
			if r.code != c.code {
				t.Errorf("%s, exit code %d: %s", r.Result, r.code, r.text)
			}
			if c.found == "" {
				if len(r.enforced()) > 0 || r.Result != selftest.NotRun || !strings.Contains(r.Reason, "stage2: ") {
					t.Errorf("%s, enforced %q: %s", r.Result, r.enforced(), r.text)
				}
				return
			}
			for _, probe := range c.probes {
				if f := r.finding(t, probe); f.Verdict != c.found {
					t.Errorf("%s: %s %s", probe, f.Verdict, f.Reason)
				}
			}
			if f := r.finding(t, "environment"); f.Verdict != selftest.Enforced {
				t.Errorf("%s: %s", r.Result, r.text)
			}
		})
	}
}

// Directories in which no fixture can be made, or which the helper refuses.
func TestSelfTestRefusedDirectory(t *testing.T) {
	u := testenv.Ordinary(t)
	needBwrap(t, u)
	home := fixtureDir(t, u)
	closed := filepath.Join(home, "closed")
	if err := os.Mkdir(closed, 0o555); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{
		"below the scratch mount": testenv.TempDir(t, u), "missing": filepath.Join(home, "none"),
		"not writable": "/proc", "read-only": closed, "a file": "/etc/passwd",
	} {
		if name == "read-only" && u.UID == os.Getuid() && u.UID == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := selfTest(t, u, testenv.Binary(t), "self-test", "--dir", dir)
			if r.Result != selftest.NotRun || r.code != 3 || r.Reason == "" || len(r.Probes) > 0 {
				t.Errorf("%s (%s), exit code %d", r.Result, r.Reason, r.code)
			}
		})
	}
}

// Inside a jail of its own the self-test can show nothing.
func TestSelfTestNested(t *testing.T) {
	testenv.EachUser(t, func(t *testing.T, u testenv.User) {
		needBwrap(t, u)
		dir := fixtureDir(t, u)
		bin := filepath.Dir(testenv.Binary(t))
		for _, args := range [][]string{{"--dir", dir}, {}} {
			argv := []string{testenv.Binary(t), "run", "--workspace", dir, "--ro", bin, "--", testenv.Binary(t), "self-test"}
			r := selfTest(t, u, append(argv, args...)...)
			if got := r.enforced(); len(got) > 0 || r.Result != selftest.NotRun || r.code != 3 {
				t.Errorf("%q: enforced %q, %s (%s), exit code %d", args, got, r.Result, r.Reason, r.code)
			}
		}
		nothingLeft(t, dir)
	})
}

// What a person sees.
func TestSelfTestLines(t *testing.T) {
	u := testenv.Ordinary(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"self-test", "--dir", "/etc/passwd"}, 3, "RESULT: NOT RUN (not a pass)\n"},
		{[]string{"--self-test", "--require", "landlok"}, 2, "no layer's name"},
		{[]string{"self-test", "--dir", "/var/tmp", "--only", "environment"}, 0, "RESULT: PASSED (ONLY 1 OF "},
		{[]string{"self-test", "--help"}, 0, "--require all|TAG,..."},
		{[]string{"--probe-file"}, 2, "internal"},
		{[]string{"--probe-nothing", "n", "-"}, 2, "internal"},
	} {
		cmd := exec.Command(testenv.Binary(t), c.args...)
		testenv.As(t, cmd, u)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("%q: exit code %d, %q", c.args, cmd.ProcessState.ExitCode(), &out)
		}
	}
}
