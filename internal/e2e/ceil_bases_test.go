//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// A wrong base is a skip with its own reason, which names only what was asked for.
func TestCeilWrongBases(t *testing.T) {
	tmp := testenv.TempDir(t, testenv.Me())
	lookalike := filepath.Join(tmp, "lookalike")
	must(t, os.Mkdir(lookalike, 0o755))
	for name, text := range map[string]string{"cgroup.controllers": "memory pids\n", "cgroup.procs": "", "cgroup.subtree_control": ""} {
		must(t, os.WriteFile(filepath.Join(lookalike, name), []byte(text), 0o644))
	}
	const mem, pids = 64 << 20, 30
	for _, k := range []struct {
		name, base, reason string
		limits             protocol.Limits
		files              string
	}{
		{"three text files", lookalike, "is an ordinary directory", protocol.Limits{Pids: pids}, "pids.max not applied"},
		{"missing", filepath.Join(tmp, "typo"), "does not exist", protocol.Limits{MemBytes: mem}, "memory.max not applied"},
		{"a file", lookalike + "/cgroup.procs", "is not a directory", protocol.Limits{MemBytes: mem, Pids: pids}, "memory.max and pids.max not applied"},
		{"nothing asked for", lookalike, "", protocol.Limits{CPUSeconds: 600}, ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			c, dir := ceil(t, k.base, k.limits)
			if has(c.hello.Features, "cgroup-v2") {
				t.Errorf("hello: %q", c.hello.Features)
			}
			skips := cgroupSkips(c, 2, dir)
			if k.files == "" && len(skips) != 0 {
				t.Errorf("got %q", skips)
			}
			if k.files != "" && (len(skips) != 1 || !strings.HasPrefix(skips[0], "skip:cgroup-v2: ") ||
				!strings.Contains(skips[0], k.reason) || !strings.HasSuffix(skips[0], "; "+k.files)) {
				t.Errorf("got %q", skips)
			}
			c.down()
		})
	}
}

// cgroupSkips gives what a command's report says of the ceilings.
func cgroupSkips(c *conn, id uint64, dir string) (skips []string) {
	c.t.Helper()
	for _, e := range c.sh(id, dir, "true").exit.Enforcement {
		if tag, _ := protocol.Layer(e); tag == "cgroup-v2" {
			skips = append(skips, e)
		}
	}
	return skips
}

// The same of cgroups that will not do, each for another reason; nothing that was asked
// is written, and --require-enforced refuses before the command starts.
func TestCeilWrongCgroups(t *testing.T) {
	base := ceilBase(t)
	at := func(name string) string { return filepath.Join(base, name) }
	u := testenv.Me()
	if u.UID == 0 { // whom a closed directory does not stop
		u = testenv.Ordinary(t)
		must(t, os.Chmod(base, 0o755))
	}
	for _, name := range []string{"full", "poor", "poor/base", "closed", "closed/base", "threaded", "threaded/base"} {
		must(t, os.Mkdir(at(name), 0o755))
		defer os.Remove(at(name)) // deepest first
	}
	must(t, os.WriteFile(base+"/cgroup.subtree_control", []byte("+memory +pids"), 0))
	must(t, os.WriteFile(at("threaded/base/cgroup.type"), []byte("threaded"), 0))
	must(t, os.Chmod(at("closed"), 0))
	defer os.Chmod(at("closed"), 0o755)
	resident := exec.Command("/bin/sleep", "600")
	must(t, resident.Start())
	defer resident.Wait()
	defer resident.Process.Kill()
	must(t, os.WriteFile(at("full/cgroup.procs"), []byte(uintText(uint64(resident.Process.Pid))), 0))

	kinds := map[string]struct{ base, reason string }{
		"a process in it":        {at("full"), "holds 1 processes"},
		"no controllers":         {at("poor/base"), "has no memory and no pids controller"},
		"closed":                 {at("closed"), "cannot be entered by uid"},
		"below a closed one":     {at("closed/base"), "cannot be entered by uid"},
		"of threads":             {at("threaded/base"), `is a cgroup of type "threaded"`},
		"the helper's own":       {"", "holds the helper itself"},
		"nothing but a cgroup's": {at("full/cgroup.procs"), "is not a directory"},
	}
	if os.Getuid() == 0 {
		kinds["another user's"] = struct{ base, reason string }{at("poor"), "is not for uid"}
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			u := u
			u.Home = testenv.TempDir(t, u)
			dir := testenv.TempDir(t, u)
			p := basePolicy(dir)
			p.Limits = protocol.Limits{MemBytes: 64 << 20, Pids: 30}
			if k.base == "" {
				k.base = ownCgroup(t)
			}
			c := connect(t, u, p, "--cgroup-base", k.base)
			if has(c.hello.Features, "cgroup-v2") {
				t.Errorf("hello: %q", c.hello.Features)
			}
			skips := cgroupSkips(c, 2, dir)
			if len(skips) != 1 || !strings.HasPrefix(skips[0], "skip:cgroup-v2: --cgroup-base ") ||
				!strings.Contains(skips[0], k.reason) || !strings.HasSuffix(skips[0], "; memory.max and pids.max not applied") {
				t.Errorf("got %q", skips)
			}
			c.down()
			if name != "a process in it" { // one will do: it looks at no reason
				return
			}
			c = connect(t, u, p, "--cgroup-base", k.base, "--require-enforced")
			c.start(2, dir, "sh", "-c", "echo ran >strict")
			r := c.collect(2)
			if _, err := os.Stat(filepath.Join(dir, "strict")); err == nil || r.fail == nil || r.fail.Code != protocol.CodeRefused || !strings.Contains(r.fail.Msg, "cgroup-v2") {
				t.Errorf("got %+v, %+v, the file: %v", r.exit, r.fail, err)
			}
			c.down()
		})
	}
}

// ownCgroup is where the test runs, below the hierarchy's top.
func ownCgroup(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/cgroup")
	must(t, err)
	_, own, ok := strings.Cut(strings.TrimSpace(string(b)), "0::/")
	if !ok || own == "" {
		testenv.Skip(t, "cgroup-own", "this test runs in the root cgroup, which is a base")
	}
	return filepath.Join("/sys/fs/cgroup", own)
}
