package explain

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

const uid = 1000

// layout fills in the mode that most nodes have.
func layout(entries map[string]host.Node) host.Layout {
	l := host.Layout{}
	for path, n := range entries {
		if n.Mode == 0 {
			n.Mode = 0o755
		}
		l[path] = n
	}
	return l
}

func dir(owner uint32) host.Node { return host.Node{Kind: host.Dir, UID: owner, GID: owner} }
func file(owner, mode uint32) host.Node {
	return host.Node{Kind: host.File, UID: owner, GID: owner, Mode: mode, Nlink: 1}
}
func missing() host.Node { return host.Node{Kind: host.Missing} }

func facts() host.Facts {
	return host.Facts{
		OS: "linux", UID: uid, GID: uid, Home: "/home/ann", LandlockABI: 9, TotalRAM: 1 << 32,
		Layout: layout(map[string]host.Node{
			"/": dir(0), "/usr": dir(0), "/etc": dir(0), "/proc": dir(0), "/dev": dir(0), "/tmp": {Kind: host.Dir, Mode: 0o1777},
			"/bin": {Kind: host.Link, Target: "usr/bin"}, "/usr/bin": dir(0), "/etc/hosts": file(0, 0o644), "/etc/resolv.conf": file(0, 0o644),
			"/home": dir(0), "/home/ann": dir(uid), "/home/ann/w": dir(uid), "/home/ann/w/f": file(uid, 0o644),
			"/home/ann/w/ro": file(uid, 0o444), "/home/ann/w/theirs": file(0, 0o644), "/home/ann/w/.git": dir(uid), "/home/ann/w/.git/hooks": dir(uid),
			"/home/ann/w/new": missing(), "/home/ann/w/closed": {Kind: host.Dir, UID: 0, Mode: 0o700}, "/home/ann/w/closed/x": {Kind: host.Denied},
			"/home/ann/other": dir(uid), "/home/ann/other/x": missing(),
			"/dev/kvm": {Kind: host.CharDevice, Mode: 0o660}, "/run": dir(0), "/run/docker.sock": {Kind: host.Socket, Mode: 0o660},
			"/sbin": missing(), "/lib": missing(), "/lib32": missing(), "/lib64": missing(), "/opt": missing(), "/var": dir(0), "/var/lib": dir(0),
			"/nix": missing(), "/run/current-system": missing(), "/tmp/x": file(uid, 0o644),
		}),
	}
}

func policyFor(change func(*protocol.Policy)) protocol.Policy {
	p := protocol.Policy{WritableRoots: []string{"/home/ann/w"}, Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	if change != nil {
		change(&p)
	}
	return p
}

func sceneOf(t *testing.T, f host.Facts, change func(*protocol.Policy)) Scene {
	t.Helper()
	for _, p := range append(plan.ServicePlaces, plan.SecretPlaces...) {
		at := strings.ReplaceAll(p.Path, "{uid}", "1000")
		for dir := at; ; dir = host.Parent(dir) { // everything that a survey would have met
			if _, ok := f.Layout[dir]; !ok {
				f.Layout[dir] = missing()
			}
			if dir == "/" {
				break
			}
		}
	}
	s, err := New(policyFor(change), f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAt(t *testing.T) {
	guarded := func(p *protocol.Policy) {
		p.Protected = []string{"/home/ann/w/.git/hooks"}
		p.Mounts = []protocol.Mount{{Path: "/etc/hosts", Access: protocol.ReadWrite, Required: true}}
	}
	for _, c := range []struct {
		path, list  string
		index       int
		read, write bool
		effect      plan.Effect
		held, note  string
	}{
		{"/home/ann/w/f", "writable_roots", 0, true, true, plan.ReadWrite, "", ""},
		{"/home/ann/w/new", "writable_roots", 0, true, true, plan.ReadWrite, "", "does not exist on the host yet"},
		{"/home/ann/w/ro", "writable_roots", 0, true, false, plan.ReadWrite, `"/home/ann/w/ro" itself (mode 0444, uid 1000) is not writable`, ""},
		{"/home/ann/w/theirs", "writable_roots", 0, true, false, plan.ReadWrite, "uid 0) is not writable for uid 1000", ""},
		{"/home/ann/w/closed/x", "writable_roots", 0, false, false, plan.ReadWrite, "closed to this user", ""},
		{"/home/ann/w/.git", "writable_roots", 0, true, true, plan.ReadWrite, "", "cannot be renamed or removed"},
		{"/home/ann/w/.git/hooks", "protected", 0, false, false, plan.Masked, "", "something empty"},
		{"/etc/hosts", "mounts", 0, true, false, plan.ReadWrite, "not writable for uid 1000", ""},
		{"/etc", "base", -1, true, false, plan.ReadOnly, "", ""},
		{"/bin", "base", -1, true, false, plan.ReadOnly, "", ""}, // through the link that the jail has
		{"/home/ann/other", "", -1, false, false, plan.None, "", ""},
		{"/home", "", -1, false, false, plan.None, "", "nothing in it but the way"},
		{"/tmp/x", "scratch", -1, true, true, plan.Private, "", "not the host's /tmp"},
		{"/proc", "proc", -1, true, false, plan.Private, "", "the jail's own /proc"},
		{"/proc/version", "proc", -1, true, false, plan.Private, "", ""},
		{"/proc/slabinfo", "proc", -1, false, false, plan.Private, "", "the jail's own /proc"}, // root's, 0400
		{"/proc/none", "proc", -1, false, false, plan.Private, "", "the jail's own /proc"},
		{"/dev/tty", "dev", -1, false, false, plan.Private, "", "no controlling terminal"},
		{"/dev/pts", "dev", -1, true, false, plan.Private, "", ""},
		{"/dev/pts/ptmx", "dev", -1, true, true, plan.Private, "", ""},
		{"/dev", "dev", -1, true, false, plan.Private, "", ""},
		{"/dev/null", "dev", -1, true, true, plan.Private, "", ""},
		{"/dev/kvm", "dev", -1, false, false, plan.Private, "", "standard devices only"},
		{"/dev/shm/x", "dev", -1, true, true, plan.Private, "", ""},
	} {
		f := facts()
		f.Layout["/dev/null"], f.Layout["/dev/shm"], f.Layout["/dev/shm/x"] = host.Node{Kind: host.CharDevice, Mode: 0o666}, dir(0), missing()
		f.Layout["/dev/tty"], f.Layout["/dev/pts"], f.Layout["/dev/pts/ptmx"] = host.Node{Kind: host.CharDevice, Mode: 0o666}, host.Node{Kind: host.Dir, Mode: 0o755}, host.Node{Kind: host.CharDevice}
		f.Layout["/proc/version"], f.Layout["/proc/slabinfo"], f.Layout["/proc/none"] = file(0, 0o444), file(0, 0o400), missing()
		a := sceneOf(t, f, guarded).At(c.path)
		if a.Decider.List != c.list || a.Decider.Index != c.index || a.Read != c.read || a.Write != c.write || a.Effect != c.effect {
			t.Errorf("%s: got %+v", c.path, a)
		}
		if (c.held == "") != (a.HeldBack == "") || !strings.Contains(a.HeldBack, c.held) {
			t.Errorf("%s: held back by %q, want %q", c.path, a.HeldBack, c.held)
		}
		if c.note != "" && !slices.ContainsFunc(a.Notes, func(n string) bool { return strings.Contains(n, c.note) }) {
			t.Errorf("%s: notes %q, want %q", c.path, a.Notes, c.note)
		}
	}
}

// Root's command has no capabilities: to it the modes are what they are to anybody.
func TestRootIsHeldBackToo(t *testing.T) {
	f := facts()
	f.UID, f.GID = 0, 0
	s := sceneOf(t, f, func(p *protocol.Policy) { p.WritableRoots = []string{"/var"} })
	f.Layout["/var/theirs"] = file(uid, 0o644)
	f.Layout["/var/ours"] = file(0, 0o644)
	if a := s.At("/var/theirs"); a.Write || !strings.Contains(a.HeldBack, "without capabilities") {
		t.Errorf("got %+v", a)
	}
	if a := s.At("/var/ours"); !a.Write || a.HeldBack != "" {
		t.Errorf("got %+v", a)
	}
}

// A supplementary group counts, and only for whoever has it.
func TestGroups(t *testing.T) {
	f := facts()
	f.Layout["/home/ann/w/shared"] = host.Node{Kind: host.File, UID: 5, GID: 77, Mode: 0o664}
	p := policyFor(nil)
	for _, groups := range [][]int{nil, {77}} {
		s, err := New(p, sceneOf(t, f, nil).Facts, groups)
		if err != nil {
			t.Fatal(err)
		}
		if a := s.At("/home/ann/w/shared"); a.Write != (len(groups) == 1) {
			t.Errorf("groups %v: %+v", groups, a)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	f := facts()
	if _, err := New(policyFor(func(p *protocol.Policy) { p.WritableRoots = []string{"/home/ann/w/new"} }), f, nil); err == nil {
		t.Error("a writable root that does not exist is planned")
	}
}

// Every change that is proposed does what it says, or is known to be refused.
func TestChanges(t *testing.T) {
	guarded := func(p *protocol.Policy) {
		p.Protected = []string{"/home/ann/w/.git"}
		p.Mounts = []protocol.Mount{{Path: "/etc/hosts", Access: protocol.ReadOnly, Required: true}}
	}
	for _, c := range []struct {
		path  string
		write bool
		want  []Change
	}{
		{"/home/ann/other", false, []Change{{Kind: AddReadable, Path: "/home/ann/other"}, {Kind: Unguard}}},
		{"/home/ann/other", true, []Change{{Kind: AddWritable, Path: "/home/ann/other"}, {Kind: Unguard}}},
		{"/home/ann/other/x", true, []Change{{Kind: AddWritable, Path: "/home/ann/other"}, {Kind: Unguard}}},
		{"/etc/hosts", true, []Change{{Kind: MountAccess, List: "mounts", Path: "/etc/hosts"}, {Kind: AddWritable, Path: "/etc/hosts"}, {Kind: Unguard}}},
		{"/home/ann/w/.git", true, []Change{{Kind: Remove, List: "protected", Path: "/home/ann/w/.git"}, {Kind: AddWritable, Path: "/home/ann/w/.git"}, {Kind: Unguard}}},
		{"/run/docker.sock", true, []Change{{Kind: AddMount, Path: "/run/docker.sock"}, {Kind: AddWritable, Path: "/run/docker.sock"}, {Kind: Unguard}}},
		{"/dev/kvm", false, []Change{{Kind: AddMount, Path: "/dev/kvm"}}},
		{"/proc", true, nil},
		{"/home/ann/w/ro", true, nil}, // held back by its own mode
		{"/dev/tty", true, nil},
		{"/closed/x", false, []Change{{Kind: Unguard}}}, // nobody knows what is there
		{"/gone", true, []Change{{Kind: Unguard}}},      // "/" is never proposed
	} {
		f := facts()
		f.Layout["/dev/tty"], f.Layout["/closed"], f.Layout["/closed/x"], f.Layout["/gone"] = host.Node{Kind: host.CharDevice, Mode: 0o666}, host.Node{Kind: host.Dir, Mode: 0o700}, host.Node{Kind: host.Denied}, missing()
		s := sceneOf(t, f, guarded)
		if got := s.Changes(s.At(c.path), c.write); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.path, got, c.want)
		}
	}
}

func TestPretend(t *testing.T) {
	f := facts()
	l := Pretend(f.Layout, "/home/ann/other/x/y", f)
	if l["/home/ann/other/x"].Kind != host.Dir || l["/home/ann/other/x/y"].Kind != host.Dir || f.Layout["/home/ann/other/x"].Kind != host.Missing {
		t.Errorf("got %+v", l["/home/ann/other/x/y"])
	}
}

func TestService(t *testing.T) {
	s := sceneOf(t, facts(), nil)
	for path, want := range map[string]string{"/run/docker.sock": "docker", "/run/user/1000/bus": "session bus", "/etc/shadow": "password", "/run/user/1001": "", "/home/ann": ""} {
		if got := s.Service(path); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// One placeholder stands for all that is missing below it; the entry that is named is
// the one about the path.
func TestNearestEntry(t *testing.T) {
	f := facts()
	for _, path := range []string{"/home/ann/w/.ed", "/home/ann/w/.ed/mcp", "/home/ann/w/.ed/tasks", "/home/ann/w/.ed/tasks/x", "/home/ann/w/.ed/other"} {
		f.Layout[path] = missing()
	}
	s := sceneOf(t, f, func(p *protocol.Policy) {
		p.Protected = []string{"/home/ann/w/.ed/mcp", "/home/ann/w/.ed/tasks", "/home/ann/w/f"}
	})
	for path, want := range map[string]int{"/home/ann/w/.ed/mcp": 0, "/home/ann/w/.ed/tasks": 1, "/home/ann/w/.ed/tasks/x": 1, "/home/ann/w/f": 2} {
		a := s.At(path)
		if a.Effect != plan.Masked || a.Decider.List != "protected" || a.Decider.Index != want || a.Decider.Path != s.Policy.Protected[want] {
			t.Errorf("%s: %+v", path, a.Decider)
		}
	}
	if a := s.At("/home/ann/w/.ed/other"); a.Effect != plan.Masked || a.Decider.List != "protected" {
		t.Errorf("beside them: %+v", a)
	}
}

// What no change of a policy gives is said with the reason.
func TestFixed(t *testing.T) {
	f := facts()
	f.Layout["/dev/tty"], f.Layout["/dev/none"], f.Layout["/gone"], f.Layout["/proc/version"] = host.Node{Kind: host.CharDevice, Mode: 0o666}, missing(), missing(), file(0, 0o444)
	f.Layout["/closed"], f.Layout["/closed/x"] = host.Node{Kind: host.Dir, Mode: 0o700}, host.Node{Kind: host.Denied}
	s := sceneOf(t, f, nil)
	for path, want := range map[string]string{
		"/proc/version": "a /proc of its own", "/dev/kvm": "a /dev of its own", "/dev/none": "no such device", "/dev/tty": "no controlling terminal",
		"/closed/x": "may not search", "/gone": "nothing on the host to grant",
	} {
		if got := Fixed(s.At(path)); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// An answer is enough for what it gives, and the jail's own in the host's place is told
// from what neither has.
func TestEnough(t *testing.T) {
	f := facts()
	f.Layout["/tmp/none"] = missing()
	s := sceneOf(t, f, func(p *protocol.Policy) {
		p.ReadableRoots, p.Protected = []string{"/home/ann/other"}, []string{"/home/ann/w/.git"}
	})
	for _, c := range []struct {
		path                string
		read, write, onHost bool
	}{
		{"/home/ann/w/f", true, true, false}, {"/home/ann/other", true, false, false}, {"/home/ann/w/.git", false, false, false},
		{"/home", false, false, false}, {"/tmp/x", true, true, true}, {"/tmp/none", true, true, false}, {"/dev/kvm", false, false, false},
	} {
		a := s.At(c.path)
		if a.Enough(false) != c.read || a.Enough(true) != c.write || a.OnHost() != c.onHost {
			t.Errorf("%s: enough to read %v, to write %v, on the host %v: %+v", c.path, a.Enough(false), a.Enough(true), a.OnHost(), a)
		}
	}
}

// The host's own modes and mounts hold for a jail as well, from the grant on down.
func TestHeldBack(t *testing.T) {
	f := facts()
	f.Layout["/home/ann/w/private"] = host.Node{Kind: host.Dir, UID: 5, GID: 5, Mode: 0o700}
	f.Layout["/home/ann/w/private/x"] = file(uid, 0o644)
	f.Layout["/home/ann/w/unreadable"] = file(uid, 0o200)
	f.Layout["/home/ann/w/socket"] = host.Node{Kind: host.Socket, UID: uid, GID: uid, Mode: 0o700}
	f.Layout["/home/ann/w/loop"] = host.Node{Kind: host.Link, Target: "loop"}
	f.Layout["/home"] = host.Node{Kind: host.Dir, Mode: 0o700} // above the grant: the jail has its own
	s := sceneOf(t, f, nil)
	frozen := s
	frozen.ReadOnly = func(path string) bool { return host.Beneath(path, "/home/ann/w") }
	for _, c := range []struct {
		path        string
		s           Scene
		read, write bool
		why         string
	}{
		{"/home/ann/w/f", s, true, true, ""},
		{"/home/ann/w/private/x", s, false, false, `the directory "/home/ann/w/private" on the way to it (mode 0700, uid 5) is closed to uid 1000`},
		{"/home/ann/w/unreadable", s, false, true, "is not readable for uid 1000"},
		{"/home/ann/w/f", frozen, true, false, "mounted read-only"},
		{"/home/ann/w/new", frozen, true, false, `"/home/ann/w" is on a file system that the host has mounted read-only`},
		{"/home/ann/w/socket", frozen, true, true, ""}, // what is written there is no file
		{"/etc/hosts", frozen, true, false, ""},
		{"/home/ann/w/f/below", s, false, false, `"/home/ann/w/f": not a directory`},
		{"/home/ann/w/loop", s, false, false, "a loop of symbolic links"},
		{"/home/ann/w/loop/x", s, false, false, "a loop of symbolic links"},
	} {
		a := c.s.At(c.path)
		if a.Read != c.read || a.Write != c.write || (c.why == "") != (a.HeldBack == "") || !strings.Contains(a.HeldBack, c.why) {
			t.Errorf("%s: read %v, write %v, held back by %q", c.path, a.Read, a.Write, a.HeldBack)
		}
	}
}

// A name is not the place: what leads there on the host the jail may not have.
func TestAsked(t *testing.T) {
	f := facts()
	f.Layout["/home/ann/w/link"], f.Layout["/alias"], f.Layout["/usr/bin/sh"] = host.Node{Kind: host.Link, Target: "f"}, host.Node{Kind: host.Link, Target: "home/ann/w"}, file(0, 0o755)
	s := sceneOf(t, f, func(p *protocol.Policy) { p.Protected = []string{"/home/ann/w/.git/hooks"} })
	for _, c := range []struct {
		name, path string
		without    bool
	}{
		{"/home/ann/w/f", "/home/ann/w/f", false}, {"/home/ann/w/link", "/home/ann/w/f", false}, {"/bin/sh", "/usr/bin/sh", false},
		{"/alias/f", "/home/ann/w/f", true}, {"/alias/other", "/home/ann/other", false},
		{"/tmp/link/f", "/home/ann/w/f", true}, {"/home/ann/w/.git/hooks/link", "/home/ann/w/f", true}, // a place of the jail's own
		{"/proc/self/status", "/proc/7/status", false},
	} {
		a := s.Asked(c.name, c.path)
		if got := slices.ContainsFunc(a.Notes, func(n string) bool { return strings.HasPrefix(n, "the jail has no "+c.name+", a link") }); got != c.without {
			t.Errorf("%s: %q", c.name, a.Notes)
		}
	}
}
