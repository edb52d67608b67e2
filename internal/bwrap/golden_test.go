package bwrap_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/bwrap"
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

var update = flag.Bool("update", false, "write the golden files")

const ws = "/home/u/ws"

// scene describes a small host, one "kind path [target]" a line.
const scene = `
dir /usr
dir /etc
file /etc/shadow
dir /etc/ssl/private
link /etc/resolv.conf ../run/systemd/resolve/stub-resolv.conf
file /run/systemd/resolve/stub-resolv.conf
link /bin usr/bin
dir /usr/bin
dir /opt
dir /var/lib/dpkg
dir /var/tmp
dir /tmp
dir /proc
dir /dev
char /dev/kvm
socket /run/docker.sock
socket /run/user/1000/bus
dir /home/u/ws/.git/hooks
file /home/u/ws/.git/config
file /home/u/ws/.env
socket /home/u/ws/sock
dir /home/u/ws/vendor/lib
dir /home/u/cache
link /home/u/alias ws
link /data /home/u
`

// layoutOf turns a scene into a layout that holds every node and, below each
// directory, everything else as missing.
func layoutOf(text string, paths []string) host.Layout {
	l := host.Layout{"/": {Kind: host.Dir, ID: host.ID{Dev: 1, Ino: 1}, Mode: 0o755}}
	kinds := map[string]host.Kind{"dir": host.Dir, "file": host.File, "link": host.Link, "socket": host.Socket, "char": host.CharDevice}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Fields(line)
		for dir := host.Parent(f[1]); dir != "/"; dir = host.Parent(dir) {
			if _, ok := l[dir]; !ok {
				l[dir] = host.Node{Kind: host.Dir, ID: host.ID{Dev: 1, Ino: uint64(1000 + len(l))}, Mode: 0o755, UID: 1000}
			}
		}
		n := host.Node{Kind: kinds[f[0]], ID: host.ID{Dev: 1, Ino: uint64(10 + i)}, Mode: 0o755, UID: 1000, Nlink: 1}
		if n.Kind == host.Link {
			n.Target = f[2]
		}
		l[f[1]] = n
	}
	for _, path := range paths { // what a walk would find missing
		for range host.MaxHops {
			res := l.Resolve(path)
			if res.Err != nil || res.Node.Kind != host.Unknown {
				break
			}
			at := res.Path
			for l[host.Parent(at)].Kind != host.Dir {
				at = host.Parent(at)
			}
			l[at] = host.Node{Kind: host.Missing}
		}
	}
	return l
}

var backport = []string{"unshare-cgroup", "die-with-parent", "cap-drop", "disable-userns", "size", "perms", "bind-fd", "ro-bind-fd"}

type golden struct {
	name  string
	p     protocol.Policy
	facts func(*host.Facts)
	flags []string // nil: backport
	o     bwrap.Options
}

func asRoot(f *host.Facts) { f.UID, f.GID = 0, 0 }

var goldens = []golden{
	{name: "workspace", p: protocol.Policy{WritableRoots: []string{ws}}},
	{name: "workspace-network", p: protocol.Policy{WritableRoots: []string{ws}}, o: bwrap.Options{NetFull: true}},
	{name: "nested-userns", p: protocol.Policy{WritableRoots: []string{ws}}, o: bwrap.Options{NestedUserns: true}},
	{name: "nothing-granted", p: protocol.Policy{}},
	{name: "protected", p: protocol.Policy{WritableRoots: []string{ws}, Protected: []string{ws + "/.git/hooks", ws + "/.env", ws + "/sock", ws + "/vendor"}}},
	{name: "placeholders", p: protocol.Policy{WritableRoots: []string{"/home/u"}, Protected: []string{ws + "/.git/commondir", ws + "/.vscode/tasks.json", "/home/u/.gitconfig"}}},
	{name: "guard", p: protocol.Policy{WritableRoots: []string{ws}, Protected: []string{ws + "/.git/hooks"}, Mounts: []protocol.Mount{{Path: ws + "/.git/config", Access: protocol.ReadOnly, Required: true}}}},
	{name: "narrower-roots", p: protocol.Policy{WritableRoots: []string{"/home/u", ws + "/vendor/lib"}, ReadableRoots: []string{ws + "/vendor"}}},
	{name: "links", p: protocol.Policy{WritableRoots: []string{"/data/alias"}}},
	{name: "host-scratch", p: protocol.Policy{WritableRoots: []string{ws}, Scratch: "/var/tmp"}},
	{name: "mounts", p: protocol.Policy{WritableRoots: []string{ws}, Mounts: []protocol.Mount{{Path: "/dev/kvm", Access: protocol.ReadWrite}, {Path: "/run/docker.sock", Access: protocol.ReadWrite}, {Path: "/run/gone", Access: protocol.ReadOnly}}}},
	{name: "fence", p: protocol.Policy{WritableRoots: []string{ws, "/home/u/cache"}, ReadableRoots: []string{"/"}, Scratch: "/tmp"}, o: bwrap.Options{NetFull: true}},
	{name: "fence-with-a-service", p: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{"/"}, Mounts: []protocol.Mount{{Path: "/run/user/1000/bus", Access: protocol.ReadWrite}}}},
	{name: "writable-host", p: protocol.Policy{WritableRoots: []string{"/"}, Protected: []string{ws + "/.env"}}},
	{name: "root-caller", p: protocol.Policy{WritableRoots: []string{ws}}, facts: asRoot},
	{name: "no-landlock", p: protocol.Policy{WritableRoots: []string{ws}}, facts: func(f *host.Facts) { f.LandlockABI = 0 }},
	{name: "upstream-0.8", p: protocol.Policy{WritableRoots: []string{ws}, Protected: []string{ws + "/.env"}}, flags: backport[:6]},
	{name: "bubblewrap-0.4", p: protocol.Policy{WritableRoots: []string{ws}, Protected: []string{ws + "/.env"}}, flags: backport[:3]},
}

func (g golden) render(t *testing.T) (plan.Plan, bwrap.Command) {
	t.Helper()
	if g.p.Scratch == "" {
		g.p.Scratch = protocol.ScratchTmpfs
	}
	f := host.Facts{OS: "linux", UID: 1000, GID: 1000, TotalRAM: 4 << 20, Home: "/home/u", LandlockABI: 7}
	if g.facts != nil {
		g.facts(&f)
	}
	f.Layout = layoutOf(scene, plan.Paths(g.p, f))
	if f.UID == 0 {
		for path, n := range f.Layout {
			n.UID = 0
			f.Layout[path] = n
		}
	}
	pl, err := plan.Build(g.p, f)
	if err != nil {
		t.Fatal(err)
	}
	if g.flags == nil {
		g.flags = backport
	}
	g.o.Flags = map[string]bool{}
	for _, name := range g.flags {
		g.o.Flags[name] = true
	}
	g.o.FirstFD, g.o.Exec = 10, []string{"/proc/self/fd/9", "--exec"}
	c, err := bwrap.Render(pl, g.o)
	if err != nil {
		t.Fatal(err)
	}
	return pl, c
}

func (g golden) text(t *testing.T) string {
	pl, c := g.render(t)
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", plan.AuditOf(pl, g.p))
	for _, s := range append(plan.AuditOf(pl, g.p).Skips, c.Skips...) {
		fmt.Fprintf(&b, "# skip:%s: %s\n", s.Tag, s.Reason)
	}
	for i, arg := range c.Args {
		if strings.HasPrefix(arg, "--") && (i == 0 || !joins(c.Args[:i])) {
			b.WriteString("\n")
		} else {
			b.WriteString(" ")
		}
		b.WriteString(arg)
	}
	b.WriteString("\n\n")
	for i, in := range c.Inherit {
		fmt.Fprintf(&b, "fd %d: kind %d %q inode %d content %q\n", 10+i, in.Kind, in.Path, in.ID.Ino, in.Content)
	}
	fmt.Fprintf(&b, "exec %q\n", c.Exec)
	return b.String()
}

// joins says whether the arguments so far end in an option that modifies the next.
func joins(args []string) bool {
	return len(args) >= 2 && (args[len(args)-2] == "--perms" || args[len(args)-2] == "--size")
}

func TestGolden(t *testing.T) {
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			file := filepath.Join("testdata", "golden", g.name+".txt")
			got := g.text(t)
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) != len(goldens) {
		t.Errorf("%d golden files for %d cases (%v)", len(files), len(goldens), err)
	}
}

// bubblewrap counts arguments; a policy it cannot take is refused in our words,
// and the modes of parents go first.
func TestArgumentLimit(t *testing.T) {
	pl := plan.Plan{Ops: []plan.Op{{Path: "/", Class: plan.RootTmpfs}}}
	for i := range 2800 {
		pl.Ops = append(pl.Ops, plan.Op{Path: fmt.Sprintf("/srv/%d/root", i), Class: plan.Writable})
	}
	o := bwrap.Options{Flags: map[string]bool{"perms": true}, Exec: []string{"x"}}
	c, err := bwrap.Render(pl, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(strings.Join(c.Args, " "), "--dir"); got != 0 || len(c.Args) < 3*2800 {
		t.Errorf("%d arguments, %d of them --dir", len(c.Args), got)
	}
	pl.Ops = append(pl.Ops, pl.Ops[1:1000]...)
	if _, err := bwrap.Render(pl, o); err == nil || !strings.Contains(err.Error(), "name fewer paths") {
		t.Errorf("too many arguments: %v", err)
	}
}

// Every descriptor is one operation's own, numbered in order.
func TestDescriptors(t *testing.T) {
	for _, g := range goldens {
		_, c := g.render(t)
		used := map[string]int{}
		for i, arg := range c.Args {
			switch arg {
			case "--bind-fd", "--ro-bind-fd", "--ro-bind-data":
				used[c.Args[i+1]]++
			}
		}
		if len(used) != len(c.Inherit) {
			t.Errorf("%s: %d descriptors, %d used", g.name, len(c.Inherit), len(used))
		}
		for i := range c.Inherit {
			if used[fmt.Sprint(10+i)] != 1 {
				t.Errorf("%s: descriptor %d is used %d times", g.name, 10+i, used[fmt.Sprint(10+i)])
			}
		}
	}
}
