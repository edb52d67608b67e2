package seatbelt

import (
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/seatbelt/eval"
	"sandboxd/protocol"
)

const (
	ws      = "/Users/u/ws"
	scratch = "/private/tmp/sandboxd-1"
	helper  = "/opt/sandboxd/bin/sandboxd"
	userTmp = "/private/var/folders/ab/xyz/T"
	witness = "/private/tmp/sandboxd-1.witness"
)

// scene describes a small Mac, one "kind path [target]" a line; "same" is another
// spelling of a name, as a survey there finds it.
const scene = `
dir /System/Library
dir /System/Volumes/Data
dir /System/Volumes/Data/home
link /home /System/Volumes/Data/home
same /System/Volumes/Data/Users /Users
same /users /Users
dir /usr/bin
dir /usr/lib
dir /bin
dir /sbin
dir /Library/Developer/CommandLineTools
dir /private/etc
dir /private/var/db
dir /private/var/select
dir /private/var/folders/ab/xyz/T
dir /private/var/folders/ab/xyz/C
socket /private/var/run/docker.sock
socket /private/var/run/mDNSResponder
dir /private/var/tmp
dir /private/tmp
dir /private/tmp/sandboxd-1
file /private/tmp/sandboxd-1.witness
dir /private/tmp/mine
dir /opt/homebrew/bin
file /opt/sandboxd/bin/sandboxd
link /etc private/etc
link /tmp private/tmp
link /var private/var
char /dev/null
block /dev/disk0
char /dev/ttys003
dir /Users/u/ws/.git/hooks
file /Users/u/ws/.git/config
file /Users/u/ws/.env
socket /Users/u/ws/sock
dir /Users/u/ws/src
dir /Users/u/ws/vendor/lib
dir /Users/u/tree
file /Users/u/tree/.git
dir /Users/u/.ssh
file /Users/u/.ssh/id
dir /Users/u/cache
socket /Users/u/agent/sock
link /Users/u/alias ws
link /data /Users/u
link /Users/u/ws/secrets /Users/u/ws/vendor
same /Users/u/WS /Users/u/ws
same /Users/u/ws/VENDOR /Users/u/ws/vendor
same /Users/u/ws/.ENV .env
dir /Applications/Xcode.app/Contents/Developer
`

var kinds = map[string]host.Kind{"dir": host.Dir, "file": host.File, "link": host.Link, "same": host.Link, "socket": host.Socket,
	"char": host.CharDevice, "block": host.BlockDevice}

// layoutOf turns a scene into a layout.
func layoutOf(text string) host.Layout {
	l := host.Layout{"/": {Kind: host.Dir, ID: host.ID{Dev: 1, Ino: 1}, Mode: 0o755}}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Fields(line)
		n := host.Node{Kind: kinds[f[0]]}
		if n.Kind == host.Link {
			n.Target, n.Respelled = f[2], f[0] == "same"
		}
		put(l, f[1], n)
	}
	return l
}

// put adds a node and the directories above it.
func put(l host.Layout, path string, n host.Node) {
	if path == "/" {
		return
	}
	if _, ok := l[host.Parent(path)]; !ok {
		put(l, host.Parent(path), host.Node{Kind: host.Dir})
	}
	n.ID, n.Mode, n.UID, n.Nlink = host.ID{Dev: 1, Ino: uint64(10 + len(l))}, 0o755, 501, 1
	l[path] = n
}

// asked completes a layout as a survey of paths would: what is not there is Missing.
func asked(l host.Layout, paths []string) host.Layout {
	out := host.Layout{}
	for path, n := range l {
		out[path] = n
	}
	for _, path := range paths {
		for range host.MaxHops {
			res := out.Resolve(path)
			if res.Err != nil || res.Node.Kind != host.Unknown {
				break
			}
			at := res.Path
			for out[host.Parent(at)].Kind != host.Dir {
				at = host.Parent(at)
			}
			out[at] = host.Node{Kind: host.Missing}
		}
	}
	return out
}

func facts(os string, l host.Layout, p protocol.Policy) host.Facts {
	f := host.Facts{OS: os, UID: 501, GID: 20, TotalRAM: 1 << 30, Home: "/Users/u", LandlockABI: 7}
	if os == "darwin" {
		f.ScratchDir, f.HelperPath, f.LandlockABI = scratch, helper, 0
	}
	f.Layout = asked(l, plan.Paths(p, f))
	return f
}

// mac is one policy on the scene.
type mac struct {
	p    protocol.Policy
	f    host.Facts
	plan plan.Plan
	o    Options
}

func newMac(t testing.TB, p protocol.Policy, edit func(*host.Facts, *Options)) mac {
	t.Helper()
	if p.Scratch == "" {
		p.Scratch = protocol.ScratchTmpfs
	}
	m := mac{p: p, f: facts("darwin", layoutOf(scene), p)}
	m.o = Options{NetFull: p.Network.Mode == protocol.NetFull, Helper: helper, UserDirs: []string{userTmp}, Witness: witness}
	if edit != nil {
		edit(&m.f, &m.o)
		m.f.Layout = asked(m.f.Layout, plan.Paths(p, m.f))
	}
	m.o.Layout = m.f.Layout
	var err error
	if m.plan, err = plan.Build(p, m.f); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m mac) render(t testing.TB) Profile {
	t.Helper()
	p, err := Render(m.plan, m.o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// read gives a profile to the evaluator.
func read(t testing.TB, p Profile) eval.Profile {
	t.Helper()
	e, err := evalOf(p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func evalOf(p Profile) (eval.Profile, error) {
	params := map[string]string{}
	for _, d := range p.Params {
		params[d.Name] = d.Value
	}
	return eval.New(p.Text, params)
}
