package plan_test

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// What the host has mounted of the kernel's inside a grant is read-only or masked, by
// what it is and what is around it; what the policy names it has.
func TestKernelMounts(t *testing.T) {
	tr := newTree()
	kernel := []host.KernelMount{}
	for path, fs := range map[string]string{"/sys": "sysfs", "/sys/fs/cgroup": "cgroup2", "/sys/kernel/debug": "debugfs", "/srv/ws/proc": "proc",
		"/srv/ws/sys": "sysfs", "/srv/ws/mq": "mqueue", "/srv/ro/proc": "proc", "/srv/ro/mq": "mqueue", "/srv/m/proc": "proc", "/srv/m/sys": "sysfs"} {
		tr.dir(path + "/in")
		kernel = append(kernel, host.KernelMount{Path: path, FSType: fs})
	}
	tr.file("/srv/m/one") // a file of a /proc by itself
	kernel = append(kernel, host.KernelMount{Path: "/srv/m/one", FSType: "proc"})
	for _, c := range []struct {
		name   string
		change func(p *protocol.Policy)
		want   map[string]plan.Effect
	}{
		{"a workspace, a readable root and a mount", func(p *protocol.Policy) {
			p.WritableRoots, p.ReadableRoots = []string{"/srv/ws"}, []string{"/srv/ro"}
			p.Mounts = []protocol.Mount{{Path: "/srv/m", Access: protocol.ReadWrite}}
		}, map[string]plan.Effect{"/srv/ws": plan.ReadWrite, "/srv/ws/proc/in": plan.Masked, "/srv/ws/sys/in": plan.ReadOnly, "/srv/ws/mq/in": plan.Masked,
			"/srv/ro/proc/in": plan.Masked, "/srv/ro/mq/in": plan.ReadOnly, "/srv/m/proc/in": plan.Masked, "/srv/m/one": plan.Masked, "/srv/m/sys/in": plan.ReadOnly, "/srv/m": plan.ReadWrite, "/sys/in": plan.None}},
		{"a writable host", func(p *protocol.Policy) { p.WritableRoots = []string{"/"} },
			map[string]plan.Effect{"/srv/ws": plan.ReadWrite, "/sys/in": plan.ReadOnly, "/sys/fs/cgroup/in": plan.ReadOnly, "/sys/kernel/debug/in": plan.ReadOnly, "/srv/ws/proc/in": plan.Masked}},
		{"a readable host", func(p *protocol.Policy) { p.ReadableRoots = []string{"/"} },
			map[string]plan.Effect{"/sys/in": plan.ReadOnly, "/srv/ws/proc/in": plan.Masked, "/srv/ws/mq/in": plan.ReadOnly}},
		{"a mount that is read-only", func(p *protocol.Policy) { p.Mounts = []protocol.Mount{ro("/srv/m")} },
			map[string]plan.Effect{"/srv/m": plan.ReadOnly, "/srv/m/sys/in": plan.ReadOnly, "/srv/m/proc/in": plan.Masked, "/srv/m/one": plan.Masked}},
		{"named", func(p *protocol.Policy) { p.WritableRoots = []string{"/", "/sys/fs/cgroup", "/srv/ws/proc"} },
			map[string]plan.Effect{"/sys/in": plan.ReadOnly, "/sys/fs/cgroup/in": plan.ReadWrite, "/srv/ws/proc/in": plan.ReadWrite}},
	} {
		p := policy(c.change)
		f := tr.facts(p)
		for _, k := range kernel {
			tr.walk(f.Layout, k.Path)
			tr.walk(f.Layout, k.Path+"/in")
		}
		f.Kernel = kernel
		pl, err := plan.Build(p, f)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for path, want := range c.want {
			if got := pl.At(path); got.Effect != want {
				t.Errorf("%s: %s is %s by %s %q, want %s", c.name, path, got.Effect, got.Op.Class, got.Op.Path, want)
			}
		}
	}
}

// Root's own secrets are masked for a command of root, files of the jail's own /proc
// among them; another caller's view has no mask for them.
func TestRootsSecrets(t *testing.T) {
	tr := newTree()
	tr.file("/etc/app/key")
	tr.file("/etc/app/conf")
	tr.file("/proc/kpageflags")
	for _, uid := range []int{0, 1000} {
		p := policy(func(p *protocol.Policy) {})
		f := tr.facts(p)
		f.UID, f.GID = uid, uid
		f.Layout = tr.survey(append(plan.Paths(p, f), "/etc/app/key", "/etc/app/conf", "/proc/kpageflags"))
		for path, n := range f.Layout {
			n.UID = uint32(uid)
			f.Layout[path] = n
		}
		if uid == 0 {
			f.Private = []string{"/etc/app/key"}
		}
		pl, err := plan.Build(p, f)
		if err != nil {
			t.Fatal(err)
		}
		for path, root := range map[string]plan.Effect{"/etc/app/key": plan.Masked, "/etc/app/conf": plan.ReadOnly, "/proc/kpageflags": plan.Masked, "/proc/version": plan.Private} {
			want := root
			if uid != 0 && root == plan.Masked {
				want = map[bool]plan.Effect{true: plan.Private, false: plan.ReadOnly}[host.Beneath(path, "/proc")]
			}
			if got := pl.At(path).Effect; got != want {
				t.Errorf("uid %d: %s is %s, want %s", uid, path, got, want)
			}
		}
		if f.AllowNestedUserns = true; uid == 0 {
			if pl, err = plan.Build(p, f); err != nil || pl.At("/proc/kpageflags").Effect == plan.Masked {
				t.Errorf("a /proc of the command's own could not be mounted: %v", err)
			}
		}
	}
}

// A socket that a variable of the helper's names is masked where a view shows it.
func TestServicesOfTheEnvironment(t *testing.T) {
	tr := newTree()
	tr.put("/tmp/editor.sock", host.Node{Kind: host.Socket})
	tr.file("/tmp/notes")
	p := policy(func(p *protocol.Policy) { p.ReadableRoots, p.Scratch = []string{"/"}, "/tmp" })
	f := tr.facts(p)
	f.Services = []host.Service{{Variable: "EDITOR_IPC", Path: "/tmp/editor.sock"}, {Variable: "NOTES", Path: "/tmp/notes"}, {Variable: "GONE", Path: "/tmp/gone"}}
	tr.walk(f.Layout, "/tmp/editor.sock")
	tr.walk(f.Layout, "/tmp/notes")
	tr.walk(f.Layout, "/tmp/gone")
	pl, err := plan.Build(p, f)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]plan.Effect{"/tmp/editor.sock": plan.Masked, "/tmp/notes": plan.ReadWrite, "/tmp/gone": plan.ReadWrite} {
		if got := pl.At(path); got.Effect != want {
			t.Errorf("%s is %s, want %s", path, got.Effect, want)
		}
	}
}

// A service that is not there and that only the host can start is remembered, in a view
// that would show it; the command's own /tmp is none such.
func TestLaterServices(t *testing.T) {
	tr := newTree()
	tr.dir("/run/user")
	for _, c := range []struct {
		name   string
		change func(p *protocol.Policy)
		want   bool
	}{
		{"a workspace", func(p *protocol.Policy) { p.WritableRoots = []string{"/srv"} }, false},
		{"a readable host", func(p *protocol.Policy) { p.ReadableRoots = []string{"/"} }, true},
		{"a writable host", func(p *protocol.Policy) { p.WritableRoots = []string{"/"} }, false},
	} {
		tr.dir("/srv")
		p := policy(c.change)
		pl, err := plan.Build(p, tr.facts(p))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := slices.Contains(pl.Later, "/run/docker.sock"); got != c.want {
			t.Errorf("%s: %q", c.name, pl.Later)
		}
		if slices.ContainsFunc(pl.Later, func(path string) bool { return strings.HasPrefix(path, "/tmp/") }) {
			t.Errorf("%s: %q", c.name, pl.Later)
		}
	}
	tr.file("/run/docker.sock")
	p := policy(func(p *protocol.Policy) { p.ReadableRoots = []string{"/"} })
	if pl, err := plan.Build(p, tr.facts(p)); err != nil || slices.Contains(pl.Later, "/run/docker.sock") || pl.At("/run/docker.sock").Effect != plan.Masked {
		t.Errorf("one that is there: %v, %q", err, pl.Later)
	}
}
