package seatbelt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/seatbelt/eval"
	"sandboxd/protocol"
)

var update = flag.Bool("update", false, "write the golden files")

// golden is one policy, its profile, and what the profile means: lines of
// "rw PATH", "ro PATH" or "-- PATH", "conn SOCKET", "noconn SOCKET", "ip", "noip".
type golden struct {
	name string
	p    protocol.Policy
	edit func(*host.Facts, *Options)
	says string
}

func roots(w ...string) protocol.Policy { return protocol.Policy{WritableRoots: w} }

var full = protocol.Network{Mode: protocol.NetFull}

var goldens = []golden{
	{name: "workspace", p: roots(ws), says: "rw /Users/u/ws/src/a; ro /usr/bin/git; ro /private/etc/hosts; -- /Users/u/.ssh/id; -- /private/tmp/mine/x; rw /private/tmp/sandboxd-1/x; rw " + userTmp + "/x; -- " + witness + "; noip; conn /Users/u/ws/sock; noconn /private/var/run/docker.sock; noconn /Users/u/agent/sock"},
	{name: "nothing-granted", says: "-- /Users/u/ws/src; ro /bin/sh; rw /dev/null; -- /dev/disk0; noip"},
	{name: "network-full", p: protocol.Policy{WritableRoots: []string{ws}, Network: full}, says: "ip; conn /private/var/run/mDNSResponder; noconn /private/var/run/docker.sock"},
	{name: "network-proxy", p: protocol.Policy{WritableRoots: []string{ws}, Network: protocol.Network{Mode: protocol.NetProxy, Allow: []string{"example.org:443"}}}, says: "noip; noconn /private/var/run/mDNSResponder"},
	{name: "protected", p: protocol.Policy{WritableRoots: []string{ws}, Protected: []string{ws + "/.git/hooks", ws + "/.env", ws + "/sock"}}, says: "-- /Users/u/ws/.git/hooks; -- /Users/u/ws/.git/hooks/pre-commit; -- /Users/u/ws/.env; rw /Users/u/ws/.git/config; noconn /Users/u/ws/sock"},
	{name: "protected-missing", p: protocol.Policy{WritableRoots: []string{"/Users/u"}, Protected: []string{"/Users/u/new/.git/hooks"}}, says: "-- /Users/u/new/.git/hooks/x; -- /Users/u/new/.GIT/Hooks/x; -- /Users/u/new/.git/hook\u017f/x; rw /Users/u/new/src"},
	{name: "protected-through-link", p: protocol.Policy{WritableRoots: []string{ws}, Protected: []string{ws + "/secrets/lib"}}, says: "-- /Users/u/ws/vendor/lib/x; -- /Users/u/ws/secrets/lib/x; rw /Users/u/ws/vendor/x"},
	{name: "protected-below-a-file", p: protocol.Policy{WritableRoots: []string{"/Users/u/tree"}, Protected: []string{"/Users/u/tree/.git/hooks"}}, says: "rw /Users/u/tree/.git; -- /Users/u/tree/.git/hooks"},
	{name: "protected-outside", p: protocol.Policy{WritableRoots: []string{ws}, Protected: []string{"/Users/u/.ssh"}}, says: "-- /Users/u/.ssh/id"},
	{name: "protected-in-base", p: protocol.Policy{WritableRoots: []string{ws}, Protected: []string{"/etc/ssh"}}, says: "-- /private/etc/ssh/config; ro /private/etc/hosts"},
	{name: "readable-inside-writable", p: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{ws + "/vendor"}}, says: "ro /Users/u/ws/vendor/x; rw /Users/u/ws/src/x; noconn /Users/u/ws/vendor/s"},
	{name: "writable-inside-readable-inside-writable", p: protocol.Policy{WritableRoots: []string{ws, ws + "/vendor/lib"}, ReadableRoots: []string{ws + "/vendor"}}, says: "ro /Users/u/ws/vendor/x; rw /Users/u/ws/vendor/lib/x"},
	{name: "links", p: roots("/data/alias"), says: "rw /Users/u/ws/x; -- /data/alias/x; -- /Users/u/cache"},
	{name: "spelled-otherwise", p: protocol.Policy{WritableRoots: []string{dataVolume + "/Users/u/WS"}, ReadableRoots: []string{"/users/u/ws/VENDOR"}, Protected: []string{"/Users/u/WS/.ENV", dataVolume + ws + "/.git/hooks"}}, says: "rw /Users/u/ws/src; ro /Users/u/ws/vendor/x; -- /Users/u/ws/.env; -- /Users/u/ws/.git/hooks/x; -- /System/Volumes/Data/Users/u/ws/.env; -- /Users/u/WS/src; rw /Users/u/ws/.git/config"},
	{name: "private-tmp", p: roots("/tmp/mine"), says: "rw /private/tmp/mine/x; -- /private/tmp/other"},
	{name: "file-root", p: roots("/Users/u/ws/.env"), says: "rw /Users/u/ws/.env; -- /Users/u/ws/.env/x; -- /Users/u/ws/.envx"},
	{name: "host-scratch", p: protocol.Policy{WritableRoots: []string{ws}, Scratch: "/var/tmp"}, says: "rw /private/var/tmp/x; -- /private/tmp/sandboxd-1/x"},
	{name: "mounts", p: protocol.Policy{WritableRoots: []string{ws}, Mounts: []protocol.Mount{{Path: "/Users/u/agent/sock", Access: protocol.ReadOnly}, {Path: "/Users/u/cache", Access: protocol.ReadWrite}, {Path: ws + "/.git/config", Access: protocol.ReadOnly}, {Path: "/Users/u/gone", Access: protocol.ReadOnly}}}, says: "rw /Users/u/cache/x; ro /Users/u/ws/.git/config; rw /Users/u/ws/.git/HEAD; conn /Users/u/agent/sock; ro /Users/u/agent/sock"},
	{name: "device", p: protocol.Policy{WritableRoots: []string{ws}, Mounts: []protocol.Mount{{Path: "/dev/ttys003", Access: protocol.ReadWrite}}}, says: "rw /dev/ttys003; -- /dev/disk0; rw /dev/null"},
	{name: "host-view", p: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{"/"}}, says: "ro /Users/u/.ssh/id; rw /Users/u/ws/x; -- /dev/disk0; rw /dev/null; noconn /private/var/run/docker.sock; -- " + witness + "; -- /System/Volumes/Data/Users/u/.ssh/id"},
	{name: "host-view-protected", p: protocol.Policy{ReadableRoots: []string{"/"}, Protected: []string{"/Users/u/.ssh"}}, says: "-- /Users/u/.ssh/id; ro /Users/u/cache/x"},
	{name: "writable-host", p: protocol.Policy{WritableRoots: []string{"/"}, Protected: []string{ws + "/.env"}}, edit: func(_ *host.Facts, o *Options) { o.Helper = "/usr/bin/sandboxd" }, says: "rw /Users/u/x; ro /usr/bin/x; -- /Users/u/ws/.env; -- /dev/disk0; -- /private/var/run/docker.sock"},
	{name: "developer-dir", p: roots(ws), edit: func(f *host.Facts, _ *Options) { f.DeveloperDir = "/Applications/Xcode.app/Contents/Developer" }, says: "ro /Applications/Xcode.app/Contents/Developer/usr/bin/clang; -- /Applications/Other.app/x"},
	{name: "ssh-agent", p: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{"/Users/u"}}, edit: func(f *host.Facts, _ *Options) { f.SSHAuth = "/Users/u/agent/sock" }, says: "-- /Users/u/agent/sock; ro /Users/u/cache/x; noconn /Users/u/agent/sock"},
	{name: "root-caller", p: roots(ws), edit: func(f *host.Facts, _ *Options) {
		f.UID, f.GID = 0, 0
		put(f.Layout, "/private/etc/master.passwd", host.Node{Kind: host.File})
		put(f.Layout, "/private/var/db/dslocal", host.Node{Kind: host.Dir})
	}, says: "-- /private/etc/master.passwd; ro /private/etc/passwd; -- /private/var/db/dslocal/nodes/Default/users/u.plist; ro /private/var/db/timezone"},
}

func (g golden) text(m mac, p Profile) string {
	var s strings.Builder
	a := plan.AuditOf(m.plan, m.p)
	fmt.Fprintf(&s, "; seatbelt-fs:%s\n; digest %s\n", a.Fields(), p.Digest)
	for _, d := range p.Params {
		fmt.Fprintf(&s, "; -D %s=%s\n", d.Name, d.Value)
	}
	return s.String() + p.Text
}

func TestGolden(t *testing.T) {
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			m := newMac(t, g.p, g.edit)
			p := m.render(t)
			g.means(t, read(t, p))
			got := g.text(m, p)
			file := filepath.Join("testdata", g.name+".sb")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the profile differs from %s; look at it and run with -update:\n%s", file, got)
			}
		})
	}
}

// means checks a golden's words with the evaluator.
func (g golden) means(t *testing.T, e eval.Profile) {
	t.Helper()
	for _, line := range strings.Split(g.says, "; ") {
		word, arg, _ := strings.Cut(line, " ")
		unix := eval.Query{Op: "network-outbound", Socket: "unix", Path: arg}
		ok := false
		switch word {
		case "rw":
			ok = e.Read(arg) && e.Write(arg)
		case "ro":
			ok = e.Read(arg) && !e.Write(arg)
		case "--":
			ok = !e.Read(arg) && !e.Write(arg)
		case "conn":
			ok = e.Allows(unix)
		case "noconn":
			ok = !e.Allows(unix)
		case "ip":
			ok = e.Allows(eval.Query{Op: "network-outbound", Socket: "ip"}) && e.Allows(eval.Query{Op: "network-bind", Socket: "ip"})
		case "noip":
			ok = !e.Allows(eval.Query{Op: "network-outbound", Socket: "ip"}) && !e.Allows(eval.Query{Op: "network-inbound", Socket: "ip"}) &&
				!e.Allows(eval.Query{Op: "system-socket", Domain: "AF_INET"})
		default:
			t.Fatalf("a golden that says %q", line)
		}
		if !ok {
			t.Errorf("the profile does not mean %q", line)
		}
	}
}
