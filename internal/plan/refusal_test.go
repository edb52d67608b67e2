package plan_test

import (
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// hostCase is one policy on one host.
type hostCase struct {
	name  string
	tree  func(tree)
	p     protocol.Policy
	facts func(*host.Facts)
	want  []string // parts of the refusal; empty: it must have a plan
}

func (c hostCase) build() (drawn, error) {
	d := drawn{tr: newTree(), p: c.p}
	d.tr.dir("/home/u/ws")
	if c.tree != nil {
		c.tree(d.tr)
	}
	if d.p.Scratch == "" {
		d.p.Scratch = protocol.ScratchTmpfs
	}
	d.f = host.Facts{OS: "linux", UID: 1000, GID: 1000, TotalRAM: 1 << 30, Home: "/home/u", LandlockABI: 7}
	if c.facts != nil {
		c.facts(&d.f)
	}
	d.tr.own(d.f.UID)
	paths := plan.Paths(d.p, d.f)
	for _, names := range d.f.Aliases {
		paths = append(paths, names...)
	}
	d.f.Layout = d.tr.survey(paths)
	var err error
	d.pl, err = plan.Build(d.p, d.f)
	return d, err
}

func ro(path string) protocol.Mount {
	return protocol.Mount{Path: path, Access: protocol.ReadOnly, Required: true}
}

func rw(path string) protocol.Mount {
	return protocol.Mount{Path: path, Access: protocol.ReadWrite, Required: true}
}

func alias(path string, names ...string) func(*host.Facts) {
	return func(f *host.Facts) { f.Aliases = host.Aliases{path: names} }
}

func asRoot(f *host.Facts) { f.UID, f.GID = 0, 0 }

var refusals = []hostCase{
	{"writable root missing", nil, protocol.Policy{WritableRoots: []string{"/home/u/gone/x"}}, nil,
		[]string{`writable_roots[0] "/home/u/gone/x"`, `"/home/u/gone" does not exist`, "create it"}},
	{"readable root missing is tolerated", nil, protocol.Policy{ReadableRoots: []string{"/home/u/gone"}}, nil, nil},
	{"readable root below a file is tolerated", func(t tree) { t.file("/home/u/f") }, protocol.Policy{ReadableRoots: []string{"/home/u/f/x"}}, nil, nil},
	{"root in the jail's own /dev", func(t tree) { t.dir("/dev/shm") },
		protocol.Policy{WritableRoots: []string{"/dev/shm"}}, nil,
		[]string{"writable_roots[0]", "a /dev of its own"}},
	{"writable root below a file", func(t tree) { t.file("/home/u/f") }, protocol.Policy{WritableRoots: []string{"/home/u/f/x"}}, nil,
		[]string{"writable_roots[0]", `below "/home/u/f", which is not a directory`}},
	{"writable root through a loop", func(t tree) { t.link("/home/u/l", "l") }, protocol.Policy{WritableRoots: []string{"/home/u/l"}}, nil,
		[]string{"writable_roots[0]", "loop"}},
	{"protected loop", func(t tree) { t.link("/home/u/l", "l") }, protocol.Policy{Protected: []string{"/home/u/l"}}, nil,
		[]string{"protected[0]", "loop"}},
	{"protected leads to the root", func(t tree) { t.link("/home/u/l", "/") }, protocol.Policy{Protected: []string{"/home/u/l"}}, nil,
		[]string{"protected[0]", `leads to "/"`}},
	{"protected /proc", nil, protocol.Policy{Protected: []string{"/proc"}}, nil, []string{"protected[0]", "needs its own /proc"}},
	{"protected process", func(t tree) { t.link("/proc/self", "12"); t.dir("/proc/12") }, protocol.Policy{Protected: []string{"/proc/self"}}, nil,
		[]string{"protected[0]", `"/proc/12" cannot be masked`}},
	{"scratch missing", nil, protocol.Policy{Scratch: "/scratch"}, nil, []string{`scratch "/scratch"`, "does not exist"}},
	{"scratch leads to the root", func(t tree) { t.link("/s", "/") }, protocol.Policy{Scratch: "/s"}, nil, []string{"scratch", `leads to "/"`}},
	{"scratch is a file", func(t tree) { t.file("/s") }, protocol.Policy{Scratch: "/s"}, nil, []string{"scratch", "not a directory"}},
	{"no /tmp in a host view", func(t tree) { delete(t, "/tmp") }, protocol.Policy{ReadableRoots: []string{"/"}}, nil, []string{"scratch", `"/tmp" does not exist`}},
	{"no /tmp in a minimal view", func(t tree) { delete(t, "/tmp") }, protocol.Policy{}, nil, nil},
	{"required mount missing", nil, protocol.Policy{Mounts: []protocol.Mount{ro("/home/u/sock")}}, nil, []string{"mounts[0]", "required", "set required to false"}},
	{"optional mount missing", nil, protocol.Policy{Mounts: []protocol.Mount{{Path: "/home/u/sock", Access: protocol.ReadOnly}}}, nil, nil},
	{"mount twice through a link", func(t tree) { t.file("/home/u/f"); t.link("/home/u/l", "f") }, protocol.Policy{Mounts: []protocol.Mount{ro("/home/u/f"), ro("/home/u/l")}}, nil,
		[]string{"mounts[1]", `mounts[0] "/home/u/f"`, "same place"}},
	{"mount below /proc through a link", func(t tree) { t.file("/proc/kcore"); t.link("/home/u/l", "/proc/kcore") }, protocol.Policy{Mounts: []protocol.Mount{ro("/home/u/l")}}, nil,
		[]string{"mounts[0]", `"/proc/kcore"`}},
	{"mount at /dev through a link", func(t tree) { t.link("/home/u/l", "/dev") }, protocol.Policy{Mounts: []protocol.Mount{ro("/home/u/l")}}, nil, []string{"mounts[0]", `leads to "/dev"`}},
	{"mount at the root through a link", func(t tree) { t.link("/home/u/l", "/") }, protocol.Policy{Mounts: []protocol.Mount{ro("/home/u/l")}}, nil, []string{"mounts[0]", `leads to "/"`}},
	{"mount reaches into protected through a link", func(t tree) { t.file("/home/u/s/f"); t.link("/home/u/l", "s/f") },
		protocol.Policy{Protected: []string{"/home/u/s"}, Mounts: []protocol.Mount{ro("/home/u/l")}}, nil,
		[]string{"mounts[0]", `"/home/u/l" (which is "/home/u/s/f")`, `protected[0] "/home/u/s"`}},
	{"root reaches into protected through a link", func(t tree) { t.dir("/home/u/s/d"); t.link("/home/l", "u/s") },
		protocol.Policy{Protected: []string{"/home/u/s"}, ReadableRoots: []string{"/home/l/d"}}, nil,
		[]string{"readable_roots[0]", `"/home/l/d" (which is "/home/u/s/d")`, `protected[0] "/home/u/s"`}},
	{"root reaches into protected that is spelled through a link", func(t tree) { t.dir("/home/u/s/d"); t.link("/home/l", "u/s") },
		protocol.Policy{Protected: []string{"/home/l"}, WritableRoots: []string{"/home/u/s/d"}}, nil,
		[]string{`writable_roots[0] "/home/u/s/d"`, `protected[0] "/home/l" (which is "/home/u/s")`}},
	{"scratch reaches into protected through a link", func(t tree) { t.dir("/home/u/s/d"); t.link("/home/l", "u/s") },
		protocol.Policy{Protected: []string{"/home/u/s"}, Scratch: "/home/l/d"}, nil, []string{"scratch", "protected[0]"}},
	{"root below protected by its own spelling is masked", func(t tree) { t.dir("/home/u/s/d") },
		protocol.Policy{Protected: []string{"/home/u/s"}, ReadableRoots: []string{"/home/u/s/d"}}, nil, nil},
	{"both spelled through the same link", func(t tree) { t.dir("/home/u/s/d"); t.link("/home/l", "u/s") },
		protocol.Policy{Protected: []string{"/home/l"}, ReadableRoots: []string{"/home/l/d"}}, nil, nil},
	{"mount covers protected through a link", func(t tree) { t.dir("/home/u/s/d"); t.link("/home/u/l", "s") },
		protocol.Policy{Protected: []string{"/home/u/s/d"}, Mounts: []protocol.Mount{ro("/home/u/l")}}, nil, []string{"mounts[0]", "covers", "protected[0]"}},
	{"read-only mount above a writable root through a link", func(t tree) { t.link("/home/l", "u") },
		protocol.Policy{WritableRoots: []string{"/home/u/ws"}, Mounts: []protocol.Mount{ro("/home/l")}}, nil, []string{"mounts[0]", "writable_roots[0]"}},
	{"read-only mount below a writable root is fine", func(t tree) { t.file("/home/u/ws/f") },
		protocol.Policy{WritableRoots: []string{"/home/u/ws"}, Mounts: []protocol.Mount{ro("/home/u/ws/f")}}, nil, nil},
	{"read-write mount above a writable root is fine", nil,
		protocol.Policy{WritableRoots: []string{"/home/u/ws"}, Mounts: []protocol.Mount{rw("/home/u")}}, nil, nil},
	{"mount is a protected inode under another name", func(t tree) { t.file("/home/u/f"); t["/home/u/g"] = t["/home/u/f"] },
		protocol.Policy{Protected: []string{"/home/u/f"}, Mounts: []protocol.Mount{ro("/home/u/g")}}, nil, []string{"mounts[0]", "same inode", "protected[0]"}},
	{"mount over the private scratch", nil, protocol.Policy{Mounts: []protocol.Mount{rw("/tmp")}}, nil, []string{`mounts[0] "/tmp"`, "covers the private scratch"}},
	{"mount below the private scratch", func(t tree) { t.file("/tmp/sock") }, protocol.Policy{Mounts: []protocol.Mount{rw("/tmp/sock")}}, nil, nil},
	{"scratch below a read-only mount", func(t tree) { t.dir("/srv/a/b") }, protocol.Policy{Scratch: "/srv/a/b", Mounts: []protocol.Mount{ro("/srv/a")}}, nil,
		[]string{`mounts[0] "/srv/a"`, `covers the scratch "/srv/a/b" with something read-only`}},
	{"scratch below a read-write mount", func(t tree) { t.dir("/srv/a/b") }, protocol.Policy{Scratch: "/srv/a/b", Mounts: []protocol.Mount{rw("/srv/a")}}, nil, nil},
	{"readable root below a read-write mount", func(t tree) { t.dir("/srv/a/b") }, protocol.Policy{ReadableRoots: []string{"/srv/a/b"}, Mounts: []protocol.Mount{rw("/srv/a")}}, nil,
		[]string{`mounts[0] "/srv/a"`, `makes readable_roots[0] "/srv/a/b" writable`}},
	{"root below another name of protected", func(t tree) { t.dir("/home/u/s"); t.dir("/mnt/s/d") },
		protocol.Policy{Protected: []string{"/home/u/s"}, ReadableRoots: []string{"/mnt/s/d"}}, alias("/home/u/s", "/mnt/s"),
		[]string{`readable_roots[0] "/mnt/s/d"`, `protected[0] "/home/u/s" (which is "/mnt/s")`}},
	{"mount over another name of protected", func(t tree) { t.dir("/home/u/s"); t.dir("/mnt/s/d") },
		protocol.Policy{Protected: []string{"/home/u/s"}, Mounts: []protocol.Mount{ro("/mnt")}}, alias("/home/u/s", "/mnt/s"),
		[]string{`mounts[0]`, "covers", `protected[0] "/home/u/s"`}},
	{"protected is the root by another name", func(t tree) { t.dir("/home/u/s") },
		protocol.Policy{Protected: []string{"/home/u/s"}}, alias("/home/u/s", "/"), []string{"protected[0]", `mounted at "/"`}},
	{"root caller below a closed directory", func(t tree) {
		t.put("/home/v", host.Node{Kind: host.Dir, Mode: 0o700, UID: 7, GID: 7})
		t.dir("/home/v/ws")
	},
		protocol.Policy{WritableRoots: []string{"/home/v/ws"}}, asRoot, []string{"writable_roots[0]", `"/home/v" belongs to another user`}},
	{"the owner passes it", func(t tree) {
		t.put("/home/v", host.Node{Kind: host.Dir, Mode: 0o700, UID: 1000, GID: 7})
		t.dir("/home/v/ws")
	}, protocol.Policy{WritableRoots: []string{"/home/v/ws"}}, nil, nil},
	{"root caller and another user's workspace", func(t tree) { t.put("/srv/ws", host.Node{Kind: host.Dir, Mode: 0o755, UID: 7, GID: 7}) },
		protocol.Policy{WritableRoots: []string{"/srv/ws"}}, asRoot, []string{"writable_roots[0]", "belongs to uid 7"}},
	{"root caller and a directory open to all", func(t tree) { t.put("/srv/ws", host.Node{Kind: host.Dir, Mode: 0o1777, UID: 7, GID: 7}) },
		protocol.Policy{WritableRoots: []string{"/srv/ws"}}, asRoot, nil},
	{"root caller below a directory closed to its owner", func(t tree) {
		t.put("/srv/v", host.Node{Kind: host.Dir, Mode: 0o600})
		t.dir("/srv/v/ws")
	}, protocol.Policy{WritableRoots: []string{"/srv/v/ws"}}, asRoot, []string{"writable_roots[0]", `"/srv/v" is closed to its own owner (mode 0600)`}},
	{"root caller whose group passes it", func(t tree) {
		t.put("/home/v", host.Node{Kind: host.Dir, Mode: 0o710, UID: 7, GID: 0})
		t.dir("/home/v/ws")
	}, protocol.Policy{WritableRoots: []string{"/home/v/ws"}}, asRoot, nil},
	{"protected below a root that its owner could open again", func(t tree) {
		t.put("/home/u/ws/d", host.Node{Kind: host.Dir, Mode: 0o600, UID: 1000})
		t.put("/home/u/ws/d/s", host.Node{Kind: host.Denied})
	}, protocol.Policy{WritableRoots: []string{"/home/u/ws/d"}, Protected: []string{"/home/u/ws/d/s"}}, nil,
		[]string{"protected[0]", `writable_roots[0] "/home/u/ws/d" above it is closed to its own owner (mode 0600)`, "chmod u+x"}},
	{"scratch that is not there", nil, protocol.Policy{Scratch: "/srv/none"}, nil, []string{"scratch", "create it, or use \"tmpfs\""}},
	{"root caller and another user's mount", func(t tree) { t.put("/srv/m", host.Node{Kind: host.Dir, Mode: 0o755, UID: 7, GID: 7}) },
		protocol.Policy{Mounts: []protocol.Mount{rw("/srv/m")}}, asRoot, []string{"mounts[0]", "belongs to uid 7"}},
	{"root caller reads another user's mount", func(t tree) { t.put("/srv/m", host.Node{Kind: host.Dir, Mode: 0o755, UID: 7, GID: 7}) },
		protocol.Policy{Mounts: []protocol.Mount{ro("/srv/m")}}, asRoot, nil},
	{"root caller and another user's scratch", func(t tree) { t.put("/srv/s", host.Node{Kind: host.Dir, Mode: 0o755, UID: 7, GID: 7}) },
		protocol.Policy{Scratch: "/srv/s"}, asRoot, []string{"scratch", "belongs to uid 7"}},
	{"scratch that leads to the host's root", func(t tree) { t.link("/srv/s", "/") }, protocol.Policy{Scratch: "/srv/s"}, nil,
		[]string{"scratch", `leads to "/"`}},
	{"private scratch where a file is", func(t tree) { delete(t, "/tmp"); t.file("/tmp") }, protocol.Policy{}, nil,
		[]string{"scratch", "is not a directory of its own"}},
	{"private scratch at a loop", func(t tree) { delete(t, "/tmp"); t.link("/tmp", "tmp") }, protocol.Policy{}, nil,
		[]string{"scratch", "cannot resolve"}},
	{"protected at a loop", func(t tree) { t.link("/home/u/ws/l", "l") }, under("/home/u/ws/l"), nil,
		[]string{"protected[0]", "cannot resolve it"}},
	{"another name of protected at a loop", func(t tree) { t.dir("/home/u/s"); t.link("/mnt/l", "l") },
		protocol.Policy{Protected: []string{"/home/u/s"}}, alias("/home/u/s", "/mnt/l/s"),
		[]string{"protected[0]", `mounted at "/mnt/l/s" as well, which cannot be resolved`}},
	{"closed to the caller", func(t tree) { t.put("/home/v/ws", host.Node{Kind: host.Denied}) },
		protocol.Policy{WritableRoots: []string{"/home/v/ws"}}, nil, []string{"writable_roots[0]", "may not search"}},
	{"never asked", func(t tree) { t.put("/home/v/ws", host.Node{}) },
		protocol.Policy{WritableRoots: []string{"/home/v/ws"}}, nil, []string{"writable_roots[0]", "never asked"}},
	{"control characters are quoted", nil, protocol.Policy{WritableRoots: []string{"/home/\x1b[31m"}}, nil, []string{`"/home/\x1b[31m"`}},
}

func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.build()
			if len(c.want) == 0 {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			r, ok := err.(*plan.Refusal)
			if !ok {
				t.Fatalf("got %v, want a refusal", err)
			}
			for _, part := range c.want {
				if !strings.Contains(r.Error(), part) {
					t.Errorf("%q lacks %q", r.Error(), part)
				}
			}
		})
	}
}

func TestCheckCwd(t *testing.T) {
	c := hostCase{tree: func(t tree) {
		t.dir("/home/u/ws/sub")
		t.file("/home/u/ws/f")
		t.dir("/home/u/ws/secret")
		t.dir("/tmp/gone")
		t.dir("/tmp/kept/ws")
		t.link("/home/l", "u/ws")
		t.put("/home/u/ws/closed", host.Node{Kind: host.Denied})
		t.link("/home/u/ws/a", "b")
		t.link("/home/u/ws/b", "a")
	}, p: protocol.Policy{WritableRoots: []string{"/home/u/ws", "/tmp/kept/ws"}, Protected: []string{"/home/u/ws/secret"}}}
	for cwd, want := range map[string]string{
		"/home/u/ws/sub":    "/home/u/ws/sub",
		"/home/l/sub":       "/home/u/ws/sub",
		"/":                 "/",
		"/tmp":              "/tmp",
		"/tmp/kept":         "/tmp/kept",
		"/usr":              "/usr",
		"/home/u":           "outside the view",
		"/home/u/ws/secret": "hidden by protected[0]",
		"/home/u/ws/f":      "not a directory",
		"/home/u/ws/no":     "does not exist",
		"/tmp/gone":         "only what the jail makes",
		"/srv/no":           `"/srv" does not exist`,
		"/home/u/ws/closed": "may not search",
		"/home/u/ws/a/d":    "cannot resolve it",
	} {
		c.facts = func(f *host.Facts) { f.Cwd = cwd }
		d, err := c.build()
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.pl.CheckCwd(cwd, d.f)
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("CheckCwd(%q) = %s, want %s", cwd, got, want)
		}
		delete(d.f.Layout, "/home/u/ws/sub")
		if _, err := d.pl.CheckCwd("/home/u/ws/sub", d.f); err == nil || !strings.Contains(err.Error(), "never asked") {
			t.Errorf("a directory that the survey forgot: %v", err)
		}
	}
}
