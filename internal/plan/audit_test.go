package plan_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// audited is a plan with one of everything that an audit counts.
func audited(t *testing.T) drawn {
	t.Helper()
	c := hostCase{tree: func(t tree) {
		t.dir(ws + "/.git/hooks")
		t.dir("/srv/ro")
		t.file("/srv/m")
	}, p: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{"/srv/ro"}, Protected: []string{ws + "/.git/hooks", "/srv/ro/gone"},
		Mounts: []protocol.Mount{ro("/srv/m")}}}
	d, err := c.build()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A number falls when a later operation undoes an earlier one: a count of
// requested operations could never show that.
func TestAuditReplays(t *testing.T) {
	whole := "mounts:ro=1,rw=1,mask=1,absent=1,pin=1,bind_ro=1,bind_rw=0,scratch=tmpfs,base=minimal,plan="
	o := plan.Origin{List: "writable_roots", Index: 9, Path: "/spelled"}
	for _, c := range []struct {
		name string
		edit func([]plan.Op) []plan.Op
		want string
		skip string
	}{
		{"untouched", func(ops []plan.Op) []plan.Op { return ops }, "ro=1,rw=1,mask=1,absent=1,pin=1,bind_ro=1", ""},
		{"a grant after the masks", func(ops []plan.Op) []plan.Op {
			return append(ops, plan.Op{Path: ws, Class: plan.Writable, Origin: o})
		}, "ro=1,rw=1,mask=0,absent=1,pin=0,bind_ro=1", `protected[0] "/home/u/ws/.git/hooks" is not masked: writable_roots[9] "/spelled" shows it`},
		{"a grant below a mask", func(ops []plan.Op) []plan.Op {
			return append(ops, plan.Op{Path: ws + "/.git/hooks/x", Class: plan.Readable, Origin: o})
		}, "ro=1,rw=1,mask=0", "shows what lies beneath it"},
		{"a read-only mount over a writable root", func(ops []plan.Op) []plan.Op {
			return append(ops, plan.Op{Path: "/home", Class: plan.MountRO, Origin: plan.Origin{List: "mounts", Index: 4, Path: "/home"}})
		}, "ro=1,rw=0,mask=0", `writable_roots[0] "/home/u/ws" is not writable: mounts[4] "/home"`},
		{"a readable root turned writable", func(ops []plan.Op) []plan.Op {
			return append(ops, plan.Op{Path: "/srv/ro", Class: plan.Writable, Origin: o})
		}, "ro=0,rw=1,mask=1,absent=0", `protected[1] "/srv/ro/gone" is not masked`},
		{"a mask lost", func(ops []plan.Op) []plan.Op {
			return slices.DeleteFunc(slices.Clone(ops), isMask)
		}, "ro=1,rw=1,mask=0", "protected[0]"},
		{"a writable root lost", func(ops []plan.Op) []plan.Op {
			return slices.DeleteFunc(slices.Clone(ops), func(op plan.Op) bool { return op.Class == plan.Writable })
		}, "ro=1,rw=0", ""},
		{"a scratch over everything", func(ops []plan.Op) []plan.Op {
			return append(ops, plan.Op{Path: "/srv", Class: plan.ScratchTmpfs})
		}, "ro=0,rw=1,mask=1,absent=1,pin=1,bind_ro=0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := audited(t)
			d.pl.Ops = c.edit(d.pl.Ops)
			a := plan.AuditOf(d.pl, d.p)
			if !strings.HasPrefix(a.String(), "mounts:"+c.want) {
				t.Errorf("%s, want %s", a, c.want)
			}
			if all := fmt.Sprint(a.Skips); !strings.Contains(all, c.skip) {
				t.Errorf("skips %s lack %q", all, c.skip)
			}
		})
	}
	d := audited(t)
	got := plan.AuditOf(d.pl, d.p).String()
	if !regexp.MustCompile("^" + regexp.QuoteMeta(whole) + "[0-9a-f]{16}$").MatchString(got) {
		t.Errorf("format: %s", got)
	}
}

// What only Landlock keeps from being written counts as read-only with it alone, and is
// said without; on macOS there is none, and no mount either.
func TestAuditWithoutLandlock(t *testing.T) {
	c := hostCase{tree: func(tr tree) {
		tr.dir(ws)
		tr.file("/srv/plain")
		tr.put("/srv/dev", host.Node{Kind: host.CharDevice})
		tr.put("/srv/pipe", host.Node{Kind: host.Fifo})
		tr.put("/srv/rw", host.Node{Kind: host.CharDevice})
		tr.put("/opt/disk", host.Node{Kind: host.BlockDevice})
		tr.put("/opt/tree/pipe", host.Node{Kind: host.Fifo})
	}, p: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{"/opt/disk", "/opt/tree", "/opt/tree/pipe"},
		Mounts: []protocol.Mount{ro("/srv/plain"), ro("/srv/dev"), ro("/srv/pipe"), {Path: "/srv/rw", Access: protocol.ReadWrite, Required: true}}}}
	d, err := c.build()
	if err != nil {
		t.Fatal(err)
	}
	a := plan.AuditOf(d.pl, d.p)
	for _, tc := range []struct {
		name, want string
		a          plan.Audit
		skips      int
	}{
		{"Linux", "mounts:ro=3,rw=1,mask=0,absent=0,pin=0,bind_ro=3,bind_rw=1,", a.On(host.Facts{OS: "linux", LandlockABI: 1}), 0},
		{"Linux without Landlock", "mounts:ro=1,rw=1,mask=0,absent=0,pin=0,bind_ro=1,bind_rw=1,", a.On(host.Facts{OS: "linux"}), 4},
		{"said once", "mounts:ro=1,rw=1,mask=0,absent=0,pin=0,bind_ro=1,bind_rw=1,", a.WithoutLandlock().WithoutLandlock(), 4},
		{"macOS", "mounts:ro=3,rw=1,mask=0,absent=0,pin=0,bind_ro=3,bind_rw=1,", a.On(host.Facts{OS: "darwin"}), 0},
	} {
		if !strings.HasPrefix(tc.a.String(), tc.want) || len(tc.a.Skips) != len(a.Skips)+tc.skips {
			t.Errorf("%s: %s, skips %v", tc.name, tc.a, tc.a.Skips)
		}
	}
	said := fmt.Sprint(a.WithoutLandlock().Skips)
	for _, name := range []string{`mounts[1] "/srv/dev"`, `mounts[2] "/srv/pipe"`, `readable_roots[0] "/opt/disk"`, `readable_roots[2] "/opt/tree/pipe"`} {
		if !strings.Contains(said, name+" is not read-only") {
			t.Errorf("%s is not named: %s", name, said)
		}
	}
}

// The seal of a view whose root is granted would turn it read-only.
func TestSealIsReplayed(t *testing.T) {
	p := plan.Plan{Ops: []plan.Op{{Path: "/", Class: plan.Writable}, {Path: ws, Class: plan.Writable}, {Path: "/", Class: plan.Seal}}}
	if e := p.At("/srv").Effect; e != plan.ReadOnly {
		t.Errorf("below a sealed root: %s", e)
	}
	if e := p.At(ws).Effect; e != plan.ReadWrite {
		t.Errorf("a mount of its own: %s", e)
	}
}

func TestAtNamesTheOperation(t *testing.T) {
	d := audited(t)
	for path, want := range map[string]string{
		ws + "/f":            "read-write writable_roots[0]",
		ws + "/.git/x":       "read-write pin",
		ws + "/.git/hooks/x": "masked protected[0]",
		"/srv/ro/f":          "read-only readable_roots[0]",
		"/srv/m":             "read-only mounts[0]",
		"/srv":               "none base",
		"/usr/x":             "read-only base",
		"/bin/sh":            "read-only base", // through the reproduced link
		"/tmp/x":             "private scratch",
		"/proc/1":            "private proc",
	} {
		v := d.pl.At(path)
		if got := v.Effect.String() + " " + v.Op.Origin.Name(); got != want {
			t.Errorf("At(%q) = %s, want %s", path, got, want)
		}
	}
}

func TestWritableRootOfTheHost(t *testing.T) {
	c := hostCase{tree: func(t tree) { t.dir("/var/lib/x"); t.dir("/opt"); t.dir("/usr/local/bin") },
		p: protocol.Policy{WritableRoots: []string{"/", "/opt", "/usr/local"}}}
	d, err := c.build()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]plan.Effect{
		"/srv": plan.ReadWrite, "/usr/bin": plan.ReadOnly, "/bin/sh": plan.ReadWrite, // the link itself is the host's
		"/etc": plan.ReadOnly, "/var/lib/x": plan.ReadOnly, "/var/x": plan.ReadWrite,
		"/opt": plan.ReadWrite, "/usr/local/bin": plan.ReadWrite, "/tmp": plan.Private, "/proc": plan.Private,
	} {
		if v := d.pl.At(path); v.Effect != want {
			t.Errorf("At(%q) = %s by %s %q, want %s", path, v.Effect, v.Op.Class, v.Op.Path, want)
		}
	}
	if ops := show(d.pl); !strings.Contains(ops, "pin /var") {
		t.Errorf("/var can be renamed away from /var/lib:\n%s", ops)
	}
}

func TestBaseOfEachSystem(t *testing.T) {
	for _, c := range []struct {
		f         host.Facts
		has, lack []string
	}{
		{host.Facts{OS: "linux", UID: 1000}, []string{"/usr", "/var/lib", "/nix/store", "/etc/resolv.conf"}, []string{"/home", "/run", "/sys", "/tmp", "/var/lib/dpkg"}},
		{host.Facts{OS: "linux"}, []string{"/usr", "/var/lib/dpkg"}, []string{"/var/lib"}},
		{host.Facts{OS: "darwin", UID: 501, DeveloperDir: "/Applications/Xcode.app/Contents/Developer"}, []string{"/System", "/private/etc", "/Applications/Xcode.app/Contents/Developer"}, []string{"/Users", "/private/tmp"}},
		{host.Facts{OS: "windows"}, nil, []string{"/usr"}},
	} {
		var paths []string
		for _, d := range plan.Base(c.f) {
			if d.Why == "" {
				t.Errorf("%q has no reason", d.Path)
			}
			paths = append(paths, d.Path)
		}
		for _, p := range c.has {
			if !slices.Contains(paths, p) {
				t.Errorf("%s uid %d lacks %q", c.f.OS, c.f.UID, p)
			}
		}
		for _, p := range c.lack {
			if slices.Contains(paths, p) {
				t.Errorf("%s uid %d has %q", c.f.OS, c.f.UID, p)
			}
		}
	}
}

func TestDarwinPlan(t *testing.T) {
	tr := newTree()
	tr.dir("/System")
	tr.dir("/Users/u/ws/.git/hooks")
	tr.dir("/private/tmp/scratch-1")
	delete(tr, "/tmp")
	tr.link("/tmp", "private/tmp")
	p := policy(func(p *protocol.Policy) {
		p.WritableRoots = []string{"/Users/u/ws", "/tmp/scratch-1"}
		p.Protected = []string{"/Users/u/ws/.git/hooks", "/Users/u/ws/gone/x"}
	})
	tr.own(501)
	f := host.Facts{OS: "darwin", UID: 501, TotalRAM: 1 << 30, ScratchDir: "/private/tmp/scratch-2"}
	f.Layout = tr.survey(plan.Paths(p, f))
	pl, err := plan.Build(p, f)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]plan.Effect{
		"/System/x": plan.ReadOnly, "/Users/u/ws/f": plan.ReadWrite, "/private/tmp/scratch-1/x": plan.ReadWrite,
		"/private/tmp/scratch-2": plan.Private, "/Users/u/ws/.git/hooks": plan.Masked, "/Users/u/ws/gone/x": plan.Masked,
		"/Users/u/ws/gone/y": plan.ReadWrite, "/Users/u/other": plan.None, "/dev/null": plan.ReadOnly,
	} {
		if v := pl.At(path); v.Effect != want {
			t.Errorf("At(%q) = %s, want %s", path, v.Effect, want)
		}
	}
	for _, op := range pl.Ops {
		if op.Class == plan.Proc || op.Class == plan.Dev || op.Placeholder {
			t.Errorf("%s %q belongs to Linux", op.Class, op.Path)
		}
	}
}

// many is a policy with n roots, each with something protected below.
func many(n int) (protocol.Policy, host.Facts) {
	tr := newTree()
	p := policy(func(p *protocol.Policy) {
		for i := range n {
			root := fmt.Sprintf("/srv/%d/root", i)
			tr.dir(root + "/.git/hooks")
			p.WritableRoots = append(p.WritableRoots, root)
			p.Protected = append(p.Protected, root+"/.git/hooks")
		}
	})
	return p, tr.facts(p)
}

// Planning is linear: counted in allocations, since a timed test proves nothing.
func TestPlanningIsLinear(t *testing.T) {
	cost := func(n int) float64 {
		p, f := many(n)
		return testing.AllocsPerRun(2, func() {
			pl, err := plan.Build(p, f)
			if err != nil {
				t.Fatal(err)
			}
			plan.AuditOf(pl, p)
		})
	}
	if small, big := cost(10), cost(1000); big > 100*small {
		t.Errorf("1,000 roots cost %.0f allocations, 10 cost %.0f", big, small)
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		p, f := many(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := plan.Build(p, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
