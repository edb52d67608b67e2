package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// show is the policy's share of a plan: everything but what every plan has.
func show(p plan.Plan) string {
	var out []string
	for _, op := range p.Ops {
		switch {
		case op.Class == plan.RootTmpfs, op.Class == plan.Proc, op.Class == plan.Dev, op.Class == plan.Seal:
			continue
		case op.Origin.List == "base", op.Path == "/bin", op.Path == "/lib", op.Path == "/tmp" && op.Class == plan.ScratchTmpfs:
			continue
		}
		line := op.Class.String() + " " + op.Path
		if op.Class == plan.MaskDir || op.Class == plan.MaskFile {
			line += fmt.Sprintf(" %04o", op.Perms)
		}
		if op.Content != "" {
			line += fmt.Sprintf(" %q", op.Content)
		}
		if op.Target != "" {
			line += " -> " + op.Target
		}
		if op.Placeholder {
			line += " placeholder"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

const ws = "/home/u/ws"

// planCase is one rule of the page.
type planCase struct {
	hostCase
	ops   string // show
	audit string // front of the audit, without the digest
	skips string // part of the skips, joined
}

func under(protected ...string) protocol.Policy {
	return protocol.Policy{WritableRoots: []string{ws}, Protected: protected}
}

var planCases = []planCase{
	{hostCase{name: "workspace", p: under()}, "writable " + ws, "ro=0,rw=1,mask=0,absent=0,pin=0,bind_ro=0,bind_rw=0,scratch=tmpfs,base=minimal", ""},
	{hostCase{name: "existing directory", tree: func(t tree) { t.dir(ws + "/d") }, p: under(ws + "/d")},
		"writable " + ws + "\nmask-dir " + ws + "/d 0444", "ro=0,rw=1,mask=1,absent=0,pin=0", ""},
	{hostCase{name: "below .git", tree: func(t tree) { t.dir(ws + "/.git/hooks") }, p: under(ws + "/.git/hooks")},
		"writable " + ws + "\npin " + ws + "/.git\nmask-dir " + ws + "/.git/hooks 0555", "ro=0,rw=1,mask=1,absent=0,pin=1", ""},
	{hostCase{name: "file, socket, fifo, device", tree: func(t tree) {
		t.file(ws + "/f")
		t.put(ws+"/s", host.Node{Kind: host.Socket})
		t.put(ws+"/p", host.Node{Kind: host.Fifo})
		t.put(ws+"/c", host.Node{Kind: host.CharDevice})
	}, p: under(ws+"/f", ws+"/s", ws+"/p", ws+"/c")},
		"writable " + ws + "\nmask-file " + ws + "/c 0000\nmask-file " + ws + "/f 0000\nmask-file " + ws + "/p 0000\nmask-file " + ws + "/s 0000", "ro=0,rw=1,mask=4", ""},
	{hostCase{name: "link", tree: func(t tree) { t.file("/srv/real"); t.link(ws+"/l", "/srv/real") }, p: protocol.Policy{WritableRoots: []string{ws, "/srv"}, Protected: []string{ws + "/l"}}},
		"writable " + ws + "\nwritable /srv\nmask-file /srv/real 0000", "ro=0,rw=2,mask=1", `through the link "/home/u/ws/l"`},
	{hostCase{name: "dangling link", tree: func(t tree) { t.link(ws+"/l", "gone") }, p: under(ws + "/l")},
		"writable " + ws + "\nmask-dir " + ws + "/gone 0555 placeholder", "ro=0,rw=1,mask=1", "through the link"},
	{hostCase{name: "missing", tree: func(t tree) { t.dir(ws + "/a") }, p: under(ws + "/a/b/c")},
		"writable " + ws + "\npin " + ws + "/a\nmask-dir " + ws + "/a/b 0555 placeholder", "ro=0,rw=1,mask=1,absent=0,pin=1", ""},
	{hostCase{name: "missing where only others can make it", tree: func(t tree) { t.put(ws+"/a", host.Node{Kind: host.Dir, UID: 5}) }, p: under(ws + "/a/b")},
		"writable " + ws + "\npin " + ws + "/a", "ro=0,rw=1,mask=0,absent=1,pin=1", ""},
	{hostCase{name: "missing where a group can make it", tree: func(t tree) { t.put(ws+"/a", host.Node{Kind: host.Dir, UID: 5, Mode: 0o775}) }, p: under(ws + "/a/b")},
		"writable " + ws + "\npin " + ws + "/a\nmask-dir " + ws + "/a/b 0555 placeholder", "ro=0,rw=1,mask=1,absent=0,pin=1", ""},
	{hostCase{name: "missing, one component in common", p: under(ws+"/a/b", ws+"/a/c")},
		"writable " + ws + "\nmask-dir " + ws + "/a 0555 placeholder", "ro=0,rw=1,mask=2", ""},
	{hostCase{name: "missing commondir", tree: func(t tree) { t.dir(ws + "/.git") }, p: under(ws + "/.git/commondir")},
		"writable " + ws + "\npin " + ws + "/.git\nmask-file " + ws + "/.git/commondir 0444 \"./\" placeholder", "ro=0,rw=1,mask=1", ""},
	{hostCase{name: "missing .gitconfig in HOME", p: protocol.Policy{WritableRoots: []string{"/home/u"}, Protected: []string{"/home/u/.gitconfig"}}},
		"writable /home/u\nmask-file /home/u/.gitconfig 0000 placeholder", "ro=0,rw=1,mask=1", ""},
	{hostCase{name: "missing .gitconfig elsewhere", p: under(ws + "/.gitconfig")},
		"writable " + ws + "\nmask-dir " + ws + "/.gitconfig 0555 placeholder", "ro=0,rw=1,mask=1", ""},
	{hostCase{name: "missing in a read-only region", p: protocol.Policy{ReadableRoots: []string{ws}, Protected: []string{ws + "/x"}}},
		"readable " + ws, "ro=1,rw=0,mask=0,absent=1", ""},
	{hostCase{name: "existing in a read-only region", tree: func(t tree) { t.dir(ws + "/x") }, p: protocol.Policy{ReadableRoots: []string{ws}, Protected: []string{ws + "/x"}}},
		"readable " + ws + "\nmask-dir " + ws + "/x 0444", "ro=1,rw=0,mask=1,absent=0", ""},
	{hostCase{name: "in a system directory", tree: func(t tree) { t.file("/etc/secret") }, p: under("/etc/secret")},
		"writable " + ws + "\nmask-file /etc/secret 0000", "ro=0,rw=1,mask=1", ""},
	{hostCase{name: "outside every grant", tree: func(t tree) { t.dir("/home/u/.ssh") }, p: under("/home/u/.ssh", "/home/u/.gone")},
		"writable " + ws, "ro=0,rw=1,mask=0,absent=2", ""},
	{hostCase{name: "above a root", p: under("/home/u")},
		"writable " + ws + "\nmask-dir /home/u 0444", "ro=0,rw=0,mask=1", ""},
	{hostCase{name: "nested entries", tree: func(t tree) { t.file(ws + "/d/f") }, p: under(ws+"/d/f", ws+"/d", ws+"/d/gone")},
		"writable " + ws + "\nmask-dir " + ws + "/d 0444", "ro=0,rw=1,mask=3", ""},
	{hostCase{name: "below a regular file", tree: func(t tree) { t.file(ws + "/.git") }, p: under(ws + "/.git/hooks")},
		"writable " + ws + "\npin " + ws + "/.git", "ro=0,rw=1,mask=0,absent=1,pin=1", ""},
	{hostCase{name: "below a regular file that is the root", tree: func(t tree) { t.file("/home/u/f") },
		p: protocol.Policy{WritableRoots: []string{"/home/u/f"}, Protected: []string{"/home/u/f/x"}}},
		"writable /home/u/f", "ro=0,rw=1,mask=0,absent=1,pin=0", ""},
	{hostCase{name: "in the scratch", tree: func(t tree) { t.dir("/tmp/d"); t.file("/tmp/f") }, p: under("/tmp/d", "/tmp/f", "/tmp/x/y")},
		"writable " + ws + "\nmask-dir /tmp/d 0444\nmask-file /tmp/f 0000\nmask-dir /tmp/x 0555", "ro=0,rw=1,mask=3", ""},
	{hostCase{name: "in the scratch beside a root", tree: func(t tree) { t.dir("/tmp/d/ws"); t.dir("/tmp/d/s") },
		p: protocol.Policy{WritableRoots: []string{"/tmp/d/ws"}, Protected: []string{"/tmp/d/s"}}},
		"writable /tmp/d/ws\nmask-dir /tmp/d/s 0444", "ro=0,rw=1,mask=1", ""},
	{hostCase{name: "hard links", tree: func(t tree) { t.put(ws+"/f", host.Node{Kind: host.File, Nlink: 3}) }, p: under(ws + "/f")},
		"writable " + ws + "\nmask-file " + ws + "/f 0000", "ro=0,rw=1,mask=1", "has 3 hard links"},
	{hostCase{name: "hard links of a hidden file", tree: func(t tree) { t.put("/srv/f", host.Node{Kind: host.File, Nlink: 2}) }, p: under("/srv/f")},
		"writable " + ws, "ro=0,rw=1,mask=0,absent=1", `"/srv/f" has 2 hard links`},
	{hostCase{name: "hard links of a nested file", tree: func(t tree) { t.put(ws+"/d/f", host.Node{Kind: host.File, Nlink: 2}) }, p: under(ws+"/d", ws+"/d/f")},
		"writable " + ws + "\nmask-dir " + ws + "/d 0444", "ro=0,rw=1,mask=2", `/d/f" has 2 hard links`},
	{hostCase{name: "hard links beside a scratch", tree: func(t tree) { t.put("/srv/f", host.Node{Kind: host.File, Nlink: 2}); t.dir("/srv/s") },
		p: protocol.Policy{Scratch: "/srv/s", Protected: []string{"/srv/f"}}},
		"scratch-path /srv/s", "ro=0,rw=0,mask=0,absent=1", `"/srv/f" has 2 hard links`},
	{hostCase{name: "hard links of what is read-only", tree: func(t tree) { t.put(ws+"/f", host.Node{Kind: host.File, Nlink: 2}) },
		p: protocol.Policy{WritableRoots: []string{ws}, Mounts: []protocol.Mount{ro(ws + "/f")}}},
		"writable " + ws + "\nmount-ro " + ws + "/f", "ro=0,rw=1,mask=0", `/f" is read-only and has 2 hard links`},
	{hostCase{name: "another name of what is protected", tree: func(t tree) { t.dir(ws + "/d"); t.dir("/mnt/a/d") },
		p:     protocol.Policy{WritableRoots: []string{ws, "/mnt"}, Protected: []string{ws + "/d"}},
		facts: alias(ws+"/d", "/mnt/a/d")},
		"writable " + ws + "\nwritable /mnt\npin /mnt/a\nmask-dir " + ws + "/d 0444\nmask-dir /mnt/a/d 0444", "ro=0,rw=2,mask=1,absent=0,pin=1", ""},
	{hostCase{name: "another name of what is missing", tree: func(t tree) { t.dir("/mnt/a") },
		p:     protocol.Policy{WritableRoots: []string{ws, "/mnt"}, Protected: []string{ws + "/n"}},
		facts: alias(ws+"/n", "/mnt/a/n")},
		"writable " + ws + "\nwritable /mnt\npin /mnt/a\nmask-dir " + ws + "/n 0555 placeholder\nmask-dir /mnt/a/n 0555 placeholder", "ro=0,rw=2,mask=1,absent=0,pin=1", ""},
	{hostCase{name: "another name of what is read-only", tree: func(t tree) { t.dir("/srv/r"); t.dir(ws + "/r") },
		p:     protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{"/srv/r"}},
		facts: alias("/srv/r", ws+"/r")},
		"writable " + ws + "\nreadable /srv/r", "ro=1,rw=1", `readable_roots[0] "/srv/r" is read-only, but the host has it mounted at "` + ws + `/r" as well`},
	{hostCase{name: "a forged placeholder", tree: func(t tree) { t.put(ws+"/r", host.Node{Kind: host.Dir, Placeholder: true}) },
		p: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{ws + "/r"}}},
		"writable " + ws + "\nreadable " + ws + "/r", "ro=1,rw=1", ""},
	{hostCase{name: "a placeholder that is left", tree: func(t tree) { t.put(ws+"/n", host.Node{Kind: host.Dir, Placeholder: true}) }, p: under(ws + "/n/deep")},
		"writable " + ws + "\nmask-dir " + ws + "/n 0555 placeholder", "ro=0,rw=1,mask=1", ""},
	{hostCase{name: "a marked file where a directory would stand", tree: func(t tree) { t.put(ws+"/n", host.Node{Kind: host.File, Nlink: 1, Placeholder: true}) }, p: under(ws + "/n")},
		"writable " + ws + "\nmask-file " + ws + "/n 0000", "ro=0,rw=1,mask=1", ""},
	{hostCase{name: "behind a directory closed to its owner", tree: func(t tree) {
		t.put(ws+"/d", host.Node{Kind: host.Dir, UID: 1000})
		t.put(ws+"/d/s", host.Node{Kind: host.Denied})
	}, p: under(ws + "/d/s")}, "writable " + ws + "\nmask-dir " + ws + "/d 0444", "ro=0,rw=1,mask=1", ""},
	{hostCase{name: "behind another's closed directory", tree: func(t tree) {
		t.put(ws+"/d", host.Node{Kind: host.Dir, UID: 5})
		t.put(ws+"/d/s", host.Node{Kind: host.Denied})
	}, p: under(ws + "/d/s")}, "writable " + ws + "\npin " + ws + "/d", "ro=0,rw=1,mask=0,absent=1,pin=1", ""},
	{hostCase{name: "deep behind a directory closed to its owner", tree: func(t tree) {
		t.put(ws+"/d", host.Node{Kind: host.Dir, UID: 1000})
		t.put(ws+"/d/s", host.Node{Kind: host.Denied})
	}, p: under(ws + "/d/s/t/u")}, "writable " + ws + "\nmask-dir " + ws + "/d 0444", "ro=0,rw=1,mask=1", ""},
	{hostCase{name: "deep in another's directory", tree: func(t tree) {
		t.dir(ws + "/a")
		t.put(ws+"/a/d", host.Node{Kind: host.Dir, UID: 5})
		t.put(ws+"/a/d/s", host.Node{Kind: host.Denied})
	}, p: under(ws + "/a/d/s")}, "writable " + ws + "\npin " + ws + "/a\npin " + ws + "/a/d", "ro=0,rw=1,mask=0,absent=1,pin=2", ""},
	{hostCase{name: "closed in a read-only region", tree: func(t tree) {
		t.put(ws+"/d", host.Node{Kind: host.Dir, UID: 1000})
		t.put(ws+"/d/s", host.Node{Kind: host.Denied})
	}, p: protocol.Policy{ReadableRoots: []string{ws}, Protected: []string{ws + "/d/s"}}}, "readable " + ws, "ro=1,rw=0,mask=0,absent=1,pin=0", ""},
	{hostCase{name: "a name longer than any file system takes", p: under(ws+"/"+strings.Repeat("n", 256), ws+"/"+strings.Repeat("m", 255))},
		"writable " + ws + "\nmask-dir " + ws + "/" + strings.Repeat("m", 255) + " 0555 placeholder", "ro=0,rw=1,mask=1,absent=1", ""},
	{hostCase{name: "devices", p: under("/dev/shm/x", "/dev/null", "/dev/kvm")},
		"writable " + ws + "\nmask-file /dev/null 0000\nmask-dir /dev/shm/x 0555", "ro=0,rw=1,mask=2,absent=1", ""},

	{hostCase{name: "the jail's own directories, and what its /proc has", tree: func(t tree) { t.file("/proc/kpageflags") }, p: under("/dev/shm", "/dev/tty", "/proc/kpageflags", "/proc/none")},
		"writable " + ws + "\nmask-dir /dev/shm 0444\nmask-file /dev/tty 0000\nmask-file /proc/kpageflags 0000", "ro=0,rw=1,mask=3,absent=1", ""},

	{hostCase{name: "roots below roots merge", tree: func(t tree) { t.dir(ws + "/a/b") },
		p: protocol.Policy{WritableRoots: []string{ws + "/a", ws}, ReadableRoots: []string{"/usr/lib", "/home/u/ws/a/b"}}},
		"writable " + ws + "\npin " + ws + "/a\nreadable " + ws + "/a/b", "ro=2,rw=2,mask=0,absent=0,pin=1", ""},
	{hostCase{name: "the stronger class takes a region", p: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{ws}}}, "writable " + ws, "ro=0,rw=1", ""},
	{hostCase{name: "a private scratch beats a root at its own place", p: protocol.Policy{WritableRoots: []string{"/tmp"}}}, "", "ro=0,rw=0,mask=0,absent=0,pin=0,bind_ro=0,bind_rw=0,scratch=tmpfs", ""},
	{hostCase{name: "scratch on the host", p: protocol.Policy{Scratch: "/tmp"}}, "scratch-path /tmp", "ro=0,rw=0,mask=0,absent=0,pin=0,bind_ro=0,bind_rw=0,scratch=path", "path sockets"},
	{hostCase{name: "a root under /proc is left to the fresh one", p: protocol.Policy{ReadableRoots: []string{"/proc", ws}}}, "readable " + ws, "ro=1", ""},
	{hostCase{name: "mounts", tree: func(t tree) {
		t.put("/run/a/sock", host.Node{Kind: host.Socket})
		t.dir(ws + "/d/e")
		t.put("/dev/kvm", host.Node{Kind: host.CharDevice})
	}, p: protocol.Policy{WritableRoots: []string{ws}, Mounts: []protocol.Mount{rw("/run/a/sock"), ro(ws + "/d/e"), rw("/dev/kvm")}}},
		"writable " + ws + "\npin " + ws + "/d\nmount-rw /dev/kvm\nmount-ro " + ws + "/d/e\nmount-rw /run/a/sock", "ro=0,rw=1,mask=0,absent=0,pin=1,bind_ro=1,bind_rw=2", ""},
	{hostCase{name: "a read-only mount inside a read-write one", tree: func(t tree) { t.file("/srv/a/b/f") },
		p: protocol.Policy{Mounts: []protocol.Mount{rw("/srv"), ro("/srv/a/b/f")}}},
		"mount-rw /srv\nmount-rw /srv/a\nmount-rw /srv/a/b\nmount-ro /srv/a/b/f", "ro=0,rw=0,mask=0,absent=0,pin=0,bind_ro=1,bind_rw=1", ""},
	{hostCase{name: "a mount that is not there", p: protocol.Policy{Mounts: []protocol.Mount{{Path: "/run/x", Access: protocol.ReadOnly}}}}, "", "ro=0", `mounts[0] "/run/x" is left out`},

	{hostCase{name: "links on the way", tree: func(t tree) { t.dir("/var/home/u/ws"); t.link("/h", "/var/home"); t.link("/var/home/u/l", "ws") },
		p: protocol.Policy{WritableRoots: []string{"/h/u/l"}}}, "link /h -> /var/home\nlink /var/home/u/l -> ws\nwritable /var/home/u/ws", "ro=0,rw=1", ""},
	{hostCase{name: "links on the way to the cwd", tree: func(t tree) { t.link("/h", "home/u") }, p: under(), facts: func(f *host.Facts) { f.Cwd = "/h/ws" }},
		"link /h -> home/u\nwritable " + ws, "ro=0,rw=1", ""},
	{hostCase{name: "resolv.conf", tree: func(t tree) {
		t.link("/etc/resolv.conf", "../run/systemd/resolve/stub")
		t.file("/run/systemd/resolve/stub")
	}, p: under()},
		"writable " + ws, "ro=0,rw=1", ""},
	{hostCase{name: "host view", tree: func(t tree) {
		t.dir("/run/user/1000")
		t.put("/run/docker.sock", host.Node{Kind: host.Socket})
		t.link("/var/run", "/run")
	},
		p: protocol.Policy{ReadableRoots: []string{"/"}, WritableRoots: []string{ws}}},
		"readable /\nwritable " + ws + "\nmask-file /run/docker.sock 0000\nmask-dir /run/user/1000 0444", "ro=1,rw=1,mask=0,absent=0,pin=0,bind_ro=0,bind_rw=0,scratch=tmpfs,base=host-view", "path sockets"},
	{hostCase{name: "host view that names a service", tree: func(t tree) { t.put("/run/user/1000/bus", host.Node{Kind: host.Socket}) },
		p: protocol.Policy{ReadableRoots: []string{"/"}, Mounts: []protocol.Mount{rw("/run/user/1000/bus")}}},
		"readable /\nmask-dir /run/user/1000 0111\nmount-rw /run/user/1000/bus", "ro=1,rw=0,mask=0,absent=0,pin=0,bind_ro=0,bind_rw=1", ""},
	{hostCase{name: "ssh agent", tree: func(t tree) { t.put("/srv/ssh-x/agent.1", host.Node{Kind: host.Socket}) },
		p: protocol.Policy{ReadableRoots: []string{"/"}}, facts: func(f *host.Facts) { f.SSHAuth = "/srv/ssh-x/agent.1" }},
		"readable /\nmask-dir /srv/ssh-x 0444", "ro=1", ""},
	{hostCase{name: "ssh agent's directory is a root", tree: func(t tree) { t.put("/srv/ssh-x/agent.1", host.Node{Kind: host.Socket}) },
		p: protocol.Policy{ReadableRoots: []string{"/", "/srv/ssh-x"}}, facts: func(f *host.Facts) { f.SSHAuth = "/srv/ssh-x/agent.1" }},
		"readable /", "ro=2", ""},
	{hostCase{name: "something else in the ssh agent's directory is a root", tree: func(t tree) {
		t.put("/srv/ssh-x/agent.1", host.Node{Kind: host.Socket})
		t.dir("/srv/ssh-x/d")
	},
		p: protocol.Policy{ReadableRoots: []string{"/", "/srv/ssh-x/d"}}, facts: func(f *host.Facts) { f.SSHAuth = "/srv/ssh-x/agent.1" }},
		"readable /\nmask-file /srv/ssh-x/agent.1 0000", "ro=2", ""},
	{hostCase{name: "ssh agent in HOME", tree: func(t tree) { t.put("/home/u/agent", host.Node{Kind: host.Socket}) },
		p: protocol.Policy{ReadableRoots: []string{"/"}}, facts: func(f *host.Facts) { f.SSHAuth = "/home/u/agent" }},
		"readable /\nmask-file /home/u/agent 0000", "ro=1", ""},
	{hostCase{name: "root caller's secrets", tree: func(t tree) {
		t.file("/etc/shadow")
		t.dir("/etc/ssl/private")
		t.dir("/var/lib/dpkg")
		t.dir("/var/lib/other")
	},
		p: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{"/etc/ssl/private"}}, facts: asRoot},
		"writable " + ws + "\nmask-file /etc/shadow 0000", "ro=1,rw=1", ""},
	{hostCase{name: "no Landlock", p: under(), facts: func(f *host.Facts) { f.LandlockABI = 0 }}, "writable " + ws + "\nmask-dir /proc/1 0444", "ro=0,rw=1", ""},
}

func TestPlans(t *testing.T) {
	for _, c := range planCases {
		t.Run(c.name, func(t *testing.T) {
			d, err := c.build()
			if err != nil {
				t.Fatal(err)
			}
			if got := show(d.pl); got != c.ops {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.ops)
			}
			a := plan.AuditOf(d.pl, d.p)
			if !strings.HasPrefix(a.String(), "mounts:"+c.audit) {
				t.Errorf("%s, want %s", a, c.audit)
			}
			if all := fmt.Sprint(a.Skips); !strings.Contains(all, c.skips) || c.skips == "" && len(a.Skips) > 0 && !strings.Contains(all, "sockets") {
				t.Errorf("skips %s, want %q", all, c.skips)
			}
		})
	}
}

// A plan's lists for those who carry it out agree with what it shows.
func TestListsOfAPlan(t *testing.T) {
	d, err := hostCase{tree: func(t tree) { t.dir("/srv/r"); t.file("/etc/key") }, facts: func(f *host.Facts) { f.TotalRAM = 0 },
		p: protocol.Policy{WritableRoots: []string{ws}, ReadableRoots: []string{"/srv/r"}, Protected: []string{ws + "/gone"}, Mounts: []protocol.Mount{rw("/etc/key")}}}.build()
	if err != nil {
		t.Fatal(err)
	}
	if ops := d.pl.Placeholders(); len(ops) != 1 || ops[0].Path != ws+"/gone" {
		t.Errorf("placeholders: %+v", ops)
	}
	if dirs, tmpfs := d.pl.Writable(); !tmpfs || fmt.Sprint(slices.Sorted(slices.Values(dirs))) != "[/etc/key "+ws+" /tmp]" {
		t.Errorf("writable: %q, tmpfs %v", dirs, tmpfs)
	}
	for path, want := range map[string]string{ws + "/f": "rw", "/etc/key": "rw", "/tmp/f": "rw", "/dev/shm/f": "rw", "/srv/r/f": "r", "/etc/f": "r", "/dev/f": "r", "/proc/f": "r", ws + "/gone": "", "/srv/f": ""} {
		got := ""
		if r, w := d.pl.Access(path); r {
			got = map[bool]string{false: "r", true: "rw"}[w]
		} else if w {
			got = "w"
		}
		if got != want {
			t.Errorf("Access(%q) = %q, want %q", path, got, want)
		}
	}
	for _, op := range d.pl.Ops {
		if op.Class == plan.ScratchTmpfs && op.Size != 256<<20 {
			t.Errorf("%q may hold %d bytes on a machine whose memory is not known", op.Path, op.Size)
		}
	}
	d, err = hostCase{p: protocol.Policy{Limits: protocol.Limits{MemBytes: 7 << 20}}}.build()
	if i := slices.IndexFunc(d.pl.Ops, func(op plan.Op) bool { return op.Class == plan.ScratchTmpfs }); err != nil || i < 0 || d.pl.Ops[i].Size != 7<<20 {
		t.Errorf("the scratch is not bounded by the ceiling on memory: %v, %+v", err, d.pl.Ops)
	}
}

func TestMoreSecretsThanAreMasked(t *testing.T) {
	d, err := hostCase{facts: func(f *host.Facts) { asRoot(f); f.PrivateMore = true }}.build()
	if err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(plan.AuditOf(d.pl, d.p).Skips); !strings.Contains(all, "more than is masked below /etc") {
		t.Errorf("skips: %s", all)
	}
}
