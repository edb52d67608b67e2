//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandboxd/internal/testenv"
	"sandboxd/protocol"
)

// bornIn asks the kernel for a child in the cgroup argv[1], by clone3(CLONE_INTO_CGROUP)
// and a descriptor that needs no right to read, and prints "born" or the errno.
const bornIn = `
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open(sys.argv[1], os.O_PATH | os.O_DIRECTORY)
args = struct.pack("11Q", 0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, fd)
pid = libc.syscall(435, args, len(args))
if pid == 0:
    os._exit(0)
print("born" if pid > 0 else ctypes.get_errno())
`

// A command starts nothing in another cgroup of its user's, with a jail or without; where
// the policy hands it one to write, the report says that the ceilings are the command's.
func TestCeilCannotBeLeft(t *testing.T) {
	python := testenv.Tool(t, "python3")
	base := ceilBase(t)
	other := filepath.Join(base, "other")
	must(t, os.Mkdir(other, 0o755))
	defer os.Remove(other)
	u := testenv.Me()
	u.Home = testenv.TempDir(t, u)
	dir := testenv.TempDir(t, u)
	must(t, os.WriteFile(filepath.Join(dir, "born"), []byte(bornIn), 0o644))

	outside, err := exec.Command(python, "-IS", filepath.Join(dir, "born"), other).CombinedOutput()
	if err != nil || string(outside) != "born\n" {
		t.Fatalf("outside a jail: %q, %v", outside, err)
	}
	p := basePolicy(dir)
	p.Limits = protocol.Limits{Pids: 50}
	p.ReadableRoots = []string{"/sys"}
	c := connect(t, u, p, "--cgroup-base", base, "--allow-unenforced")
	r := c.sh(2, dir, python+" -IS born "+other)
	if r.stdout != fmt.Sprintf("%d\n", int(unix.ENOSYS)) || has(r.exit.Enforcement, "cgroup-v2") == has(r.exit.Enforcement, "skip:cgroup-v2") {
		t.Errorf("%q, %q, %q", r.stdout, r.stderr, r.exit.Enforcement)
	}
	c.down()

	p.WritableRoots = append(p.WritableRoots, other)
	c = connect(t, u, p, "--cgroup-base", base, "--allow-unenforced")
	r = c.try(3, dir, "echo $$ >"+other+"/cgroup.procs")
	if all := strings.Join(r.exit.Enforcement, "\n"); !strings.Contains(all, "skip:cgroup-v2: ") || !strings.Contains(all, "leave its cgroup") {
		t.Errorf("exit %d: %q", r.exit.Code, all)
	}
	c.down()
}

// Where the hierarchy keeps a cgroup namespace's processes to themselves (nsdelegate), a
// helper that entered one from outside can start nothing in a base inside. That is a skip
// with this reason, and not a bubblewrap that "does not exist".
func TestCeilOutsideItsNamespace(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Skip(t, "root", "only root enters another cgroup namespace")
	}
	nsenter, unshare := testenv.Tool(t, "nsenter"), testenv.Tool(t, "unshare")
	base := ceilBase(t)
	for _, name := range []string{"ns", "ns/base", "waits"} {
		must(t, os.Mkdir(filepath.Join(base, name), 0o755))
		defer os.Remove(filepath.Join(base, name)) // deepest first
	}
	u := testenv.Me()
	u.Home = testenv.TempDir(t, u)
	dir := testenv.TempDir(t, u)
	top := filepath.Join(u.Home, "cg")
	must(t, os.Mkdir(top, 0o755))
	inside := exec.Command("/bin/sh", "-c", "echo $$ >"+base+"/ns/cgroup.procs && exec "+unshare+
		" --cgroup --mount /bin/sh -c 'mount -t cgroup2 none "+top+" && : >"+dir+"/mounted && exec sleep 600'")
	must(t, inside.Start())
	defer inside.Wait()
	defer inside.Process.Kill()
	testenv.Eventually(t, "a namespace", func() bool { _, err := os.Stat(dir + "/mounted"); return err == nil })
	must(t, os.WriteFile(base+"/cgroup.subtree_control", []byte("+memory +pids"), 0))
	must(t, os.WriteFile(base+"/waits/cgroup.procs", []byte(uintText(uint64(inside.Process.Pid))), 0))
	must(t, os.WriteFile(base+"/ns/cgroup.subtree_control", []byte("+memory +pids"), 0))

	p := basePolicy(dir)
	p.Limits = protocol.Limits{Pids: 50}
	of := fmt.Sprintf("/proc/%d/ns/", inside.Process.Pid)
	m := jailed(t, u)
	c := m.connectCmd(exec.Command(nsenter, "--mount="+of+"mnt", "--cgroup="+of+"cgroup",
		testenv.Binary(t), "--cgroup-base", top+"/base", "--standby=off"), p)
	r := c.sh(2, dir, "cat /proc/self/cgroup")
	all := strings.Join(r.exit.Enforcement, "\n")
	if !strings.Contains(all, "skip:cgroup-v2: ") || !strings.Contains(all, "outside of its cgroup namespace") || has(c.hello.Features, "cgroup-v2") {
		t.Errorf("%q: %q", c.hello.Features, all)
	}
	c.down()
}

// In a base that somebody froze nothing can start. What is started there is cancelled as
// anywhere, and the helper ends in order; on one processor too, where a fork that does not
// return would stop all of it.
func TestCeilFrozenBase(t *testing.T) {
	base := ceilBase(t)
	freeze := func(to string) { must(t, os.WriteFile(base+"/cgroup.freeze", []byte(to), 0)) }
	for _, way := range []string{"off", "on"} {
		c, dir := ceil(t, base, protocol.Limits{Pids: 50}, "--standby="+way)
		c.sh(2, dir, "true")
		freeze("1")
		c.start(3, dir, "sh", "-c", "echo ran >frozen")
		testenv.Eventually(t, "its cgroup", func() bool { return len(ceilGroups(t, base)) > 0 })
		c.send(3, protocol.Cancel{})
		r := c.collect(3)
		if _, err := os.Stat(filepath.Join(dir, "frozen")); err == nil || r.exit == nil || !r.exit.Cancelled {
			t.Errorf("standby %s: %+v, %+v, the file: %v", way, r.exit, r.fail, err)
		}
		c.down()
		if left := ceilGroups(t, base); len(left) != 0 {
			t.Errorf("standby %s: left: %v", way, left)
		}
		freeze("0")
		c, dir = ceil(t, base, protocol.Limits{Pids: 50}, "--standby="+way)
		c.sh(4, dir, "true")
		c.down()
	}
}
