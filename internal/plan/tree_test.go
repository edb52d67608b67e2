package plan_test

import (
	"strings"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// tree is a whole host in memory: physical path to node.
type tree map[string]host.Node

var nextIno uint64

// newTree has what every host has.
func newTree() tree {
	t := tree{}
	for _, d := range []string{"/", "/usr/bin", "/usr/lib", "/etc", "/tmp", "/proc", "/dev", "/home/u", "/var/tmp", "/run"} {
		t.dir(d)
	}
	t.link("/bin", "usr/bin")
	t.link("/lib", "usr/lib")
	return t
}

func (t tree) put(path string, n host.Node) {
	if path != "/" {
		t.dir(host.Parent(path))
	}
	nextIno++
	n.ID = host.ID{Dev: 1, Ino: nextIno}
	if n.Mode == 0 {
		n.Mode = 0o755
	}
	t[path] = n
}

func (t tree) dir(path string) {
	if _, ok := t[path]; !ok {
		t.put(path, host.Node{Kind: host.Dir})
	}
}

func (t tree) file(path string)         { t.put(path, host.Node{Kind: host.File, Nlink: 1}) }
func (t tree) link(path, target string) { t.put(path, host.Node{Kind: host.Link, Target: target}) }

// survey walks paths as the kernel would and notes what it met. It shares no code
// with Resolve.
func (t tree) survey(paths []string) host.Layout {
	l := host.Layout{"/": t["/"]}
	for _, path := range paths {
		t.walk(l, path)
	}
	return l
}

// walk is path_resolution(7) with a stack of names; it returns the physical path,
// "" where there is none.
func (t tree) walk(l host.Layout, path string) string {
	stack := []string{}
	todo := strings.Split(path, "/")
	for hops := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if len(stack) > 0 {
				stack = stack[:len(stack)-1]
			}
			continue
		}
		at := "/" + strings.Join(append(stack[:len(stack):len(stack)], name), "/")
		n, ok := t[at]
		if !ok {
			l[at] = host.Node{Kind: host.Missing}
			return ""
		}
		l[at] = n
		if n.Kind == host.Link {
			if hops++; hops > 60 {
				return ""
			}
			if strings.HasPrefix(n.Target, "/") {
				stack = nil
			}
			todo = append(strings.Split(n.Target, "/"), todo...)
			continue
		}
		if n.Kind != host.Dir {
			if strings.Trim(strings.Join(todo, ""), "/") != "" {
				return ""
			}
			return at
		}
		stack = append(stack[:len(stack):len(stack)], name)
	}
	return "/" + strings.Join(stack, "/")
}

func (t tree) facts(p protocol.Policy) host.Facts {
	f := host.Facts{OS: "linux", UID: 1000, GID: 1000, TotalRAM: 1 << 30, Home: "/home/u", LandlockABI: 7}
	t.own(1000)
	f.Layout = t.survey(plan.Paths(p, f))
	return f
}

// own gives everything to the caller that a test did not give to somebody else.
func (t tree) own(uid int) {
	for path, n := range t {
		if n.UID == 0 {
			n.UID = uint32(uid)
			t[path] = n
		}
	}
}

// policy is a small one.
func policy(edit func(*protocol.Policy)) protocol.Policy {
	p := protocol.Policy{Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	edit(&p)
	return p
}
