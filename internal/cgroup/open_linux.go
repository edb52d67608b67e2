package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/cgroups/v3"
	"golang.org/x/sys/unix"
)

// BaseEnv is the variable that names the base where no flag does.
const BaseEnv = "SANDBOXD_CGROUP_BASE"

// hint is what an operator does about a missing base.
const hint = "give the helper a cgroup of its own (systemd: Delegate=yes, and DelegateSubgroup= on 254 and later, so that the helper is not in it itself) and name that with --cgroup-base"

// controllers are the ones that hold the ceilings.
var controllers = []string{"memory", "pids"}

// Base is a cgroup that executions get children of.
type Base struct {
	dir dir
	pid int

	mu      sync.Mutex
	enabled bool // the controllers, for the children
}

// Path is the base's directory.
func (b *Base) Path() string { return b.dir.path }

// Close gives the base's descriptor back. Groups made before stay usable.
func (b *Base) Close() error { return b.dir.f.Close() }

// Open finds the base: flag (--cgroup-base) over env (the value of [BaseEnv]) over
// the helper's own cgroup, which serves only where it is the true root, since a
// cgroup with processes of its own cannot have children with these controllers. It
// writes nothing. Where there is no usable base it returns nil and the reason.
func Open(flag, env string) (*Base, string) {
	switch {
	case flag != "":
		return open(flag, fmt.Sprintf("--cgroup-base %q", flag))
	case env != "":
		return open(env, fmt.Sprintf("%s %q", BaseEnv, env))
	}
	top := ""
	switch cgroups.Mode() {
	case cgroups.Unified:
		top = "/sys/fs/cgroup"
	case cgroups.Hybrid:
		top = "/sys/fs/cgroup/unified"
	default:
		return nil, "no cgroup v2 hierarchy is mounted on /sys/fs/cgroup"
	}
	_, own, err := cgroups.ParseCgroupFileUnified("/proc/self/cgroup")
	if err != nil || own == "" {
		return nil, "the helper's own cgroup is not known (no cgroup v2 line in /proc/self/cgroup)"
	}
	return open(filepath.Join(top, own), fmt.Sprintf("the helper's own cgroup %q", own))
}

// open judges one directory; what names it in the reason.
func open(path, what string) (*Base, string) {
	d, reason := openBase(path)
	if reason != "" {
		return nil, what + " " + reason
	}
	for _, judge := range []func(dir) string{judgeType, judgeControllers, judgeEmpty, judgeAccess, judgeMigration} {
		if reason := judge(d); reason != "" {
			d.f.Close()
			return nil, what + " " + reason
		}
	}
	return &Base{dir: d, pid: os.Getpid()}, ""
}

// openBase asks statfs before anything else: an ordinary directory with three text
// files of the right names must not become a base.
func openBase(path string) (dir, string) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return dir{}, "is relative, and there is no current directory: " + err.Error()
	}
	f, err := openDir(unix.AT_FDCWD, abs, unix.O_PATH)
	switch {
	case errors.Is(err, unix.ENOENT):
		return dir{}, "does not exist"
	case errors.Is(err, unix.ENOTDIR):
		return dir{}, "is not a directory"
	case errors.Is(err, unix.EACCES):
		return dir{}, fmt.Sprintf("cannot be entered by uid %d: permission denied", os.Geteuid())
	case err != nil:
		return dir{}, "cannot be opened: " + err.Error()
	}
	reason := judgeFilesystem(f)
	if reason == "" {
		// The physical path: messages and the ancestor's look-up need it.
		if abs, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err != nil {
			reason = "cannot be resolved: " + err.Error()
		}
	}
	if reason != "" {
		f.Close()
		return dir{}, reason
	}
	return dir{f, abs}, ""
}

func judgeFilesystem(f *os.File) string {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return "cannot be examined: " + err.Error()
	}
	return judgeMagic(int64(st.Type))
}

func judgeMagic(magic int64) string {
	switch magic {
	case unix.CGROUP2_SUPER_MAGIC:
		return ""
	case unix.CGROUP_SUPER_MAGIC:
		return "is a cgroup v1 directory; ceilings need cgroup v2"
	}
	return "is an ordinary directory and not a cgroup: it is not on a cgroup2 file system"
}

// judgeType: the kernel refuses these controllers below a threaded cgroup. The true
// root has no cgroup.type.
func judgeType(d dir) string {
	kind, err := d.read("cgroup.type")
	switch kind = strings.TrimSpace(kind); {
	case errors.Is(err, unix.ENOENT), err == nil && kind == "domain":
		return ""
	case errors.Is(err, unix.EACCES):
		return fmt.Sprintf("cannot be entered by uid %d: permission denied", os.Geteuid())
	case err != nil:
		return "cannot be examined: " + err.Error()
	}
	return fmt.Sprintf("is a cgroup of type %q; memory ceilings need a domain", kind)
}

func judgeControllers(d dir) string {
	have, err := d.fields("cgroup.controllers")
	if err != nil {
		return "cannot be examined: " + err.Error()
	}
	missing := slices.DeleteFunc(slices.Clone(controllers), func(c string) bool { return slices.Contains(have, c) })
	if len(missing) == 0 {
		return ""
	}
	reason := "has no " + strings.Join(missing, " and no ") + " controller"
	if v1, _, err := cgroups.ParseCgroupFileUnified("/proc/self/cgroup"); err == nil {
		if _, ok := v1[missing[0]]; ok {
			return reason + ": this host has it on cgroup v1 (boot with systemd.unified_cgroup_hierarchy=1)"
		}
	}
	return reason + ": its parent does not pass it on in cgroup.subtree_control; " + hint
}

// judgeEmpty applies the no-internal-processes rule; the true root is exempt.
func judgeEmpty(d dir) string {
	if !d.has("cgroup.type") {
		return ""
	}
	procs, err := d.fields("cgroup.procs")
	switch {
	case err != nil:
		return "cannot be examined: " + err.Error()
	case slices.Contains(procs, fmt.Sprint(os.Getpid())):
		return "holds the helper itself, so it cannot have children with ceilings; " + hint
	case len(procs) > 0:
		return fmt.Sprintf("holds %d processes, so it cannot have children with ceilings; name a cgroup without processes of its own", len(procs))
	}
	return ""
}

// judgeAccess: may children be made, and the controllers be enabled for them?
func judgeAccess(d dir) string {
	if err := d.writable("."); err != nil {
		return fmt.Sprintf("is not for uid %d to make cgroups in: %v; %s", os.Geteuid(), err, hint)
	}
	on, err := d.fields("cgroup.subtree_control")
	if err != nil {
		return "cannot be examined: " + err.Error()
	}
	if err := d.writable("cgroup.subtree_control"); err != nil && !containsAll(on, controllers) {
		return fmt.Sprintf("is not for uid %d to enable controllers in: cgroup.subtree_control: %v", os.Geteuid(), err)
	}
	return ""
}

func containsAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(have, w) })
}

// judgeMigration: clone3(CLONE_INTO_CGROUP) asks for the right to move a process
// from the helper's cgroup, that is for write access to the common ancestor.
func judgeMigration(d dir) string {
	_, own, err := cgroups.ParseCgroupFileUnified("/proc/self/cgroup")
	if err != nil {
		return "cannot be judged: " + err.Error()
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "cannot be judged: " + err.Error()
	}
	if strings.HasPrefix(own, "/..") && borders(string(info)) {
		return fmt.Sprintf("takes no process from the helper's own cgroup %q, which is outside of its cgroup namespace (nsdelegate); start the helper in a cgroup of that namespace", own)
	}
	top, ok := ancestor(mounts(string(info)), own, d.path)
	if !ok {
		return fmt.Sprintf("has no ancestor in common with the helper's own cgroup %q, so no process can be started in it; %s", own, hint)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, top+"/cgroup.procs", unix.W_OK, unix.AT_EACCESS); err != nil {
		return fmt.Sprintf("takes no process from the helper's own cgroup %q: cgroup.procs of their common ancestor %q: %v; start the helper below the base's parent", own, top, err)
	}
	return ""
}
