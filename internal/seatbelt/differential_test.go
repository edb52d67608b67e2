package seatbelt

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// policies is how many the differential property draws, and wantPlanned how many of
// them must have had a plan: the others are refused on both systems.
const (
	policies    = "12000"
	wantPlanned = 5_000
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		checks := policies
		if testing.Short() {
			checks = "500"
		}
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// baseHelper lies in the base view of both systems.
const baseHelper = "/usr/bin/sandboxd"

var names = []string{"a", "b", ".git", "hooks", "config", "w"}

// genLayout draws a host with the shape of a Mac; the Linux plan for it has its own
// base view at the same places.
func genLayout(t *rapid.T) host.Layout {
	l := layoutOf("dir /usr/bin\ndir /private/etc\ndir /private/tmp\ndir " + scratch + "\ndir /private/var/tmp\nlink /etc private/etc\nlink /tmp private/tmp\nlink /var private/var\nlink /bin usr/bin\ndir /Users/u\ndir /dev\ndir /proc\nfile " + baseHelper)
	tops := []string{"/Users/u", "/private/tmp", "/srv", "/Users/u/w", "/private/etc"}
	for range rapid.IntRange(3, 12).Draw(t, "nodes") {
		path := rapid.SampledFrom(tops).Draw(t, "top")
		for range rapid.IntRange(1, 3).Draw(t, "depth") {
			path = host.Join(path, rapid.SampledFrom(names).Draw(t, "name"))
		}
		if !fits(l, path) {
			continue
		}
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			put(l, path, host.Node{Kind: host.File})
		case 1:
			put(l, path, host.Node{Kind: host.Link, Target: rapid.SampledFrom(places(l)).Draw(t, "target")})
		case 2:
			put(l, path, host.Node{Kind: host.Socket})
		default:
			put(l, path, host.Node{Kind: host.Dir})
		}
	}
	respellings(t, l)
	return l
}

// respellings gives some names of a host another spelling, as a survey of a Mac finds
// them: in another letter case, and by the data volume.
func respellings(t *rapid.T, l host.Layout) {
	for range rapid.IntRange(0, 3).Draw(t, "spellings") {
		path := rapid.SampledFrom(places(l)).Draw(t, "spelled")
		loud := host.Join(host.Parent(path), strings.ToUpper(path[strings.LastIndexByte(path, '/')+1:]))
		if _, ok := l[loud]; !ok && path != "/" {
			put(l, loud, host.Node{Kind: host.Link, Target: path, Respelled: true})
		}
	}
	for _, top := range []string{"/Users", "/private"} {
		put(l, dataVolume+top, host.Node{Kind: host.Link, Target: top, Respelled: true})
	}
}

func fits(l host.Layout, path string) bool {
	if _, ok := l[path]; ok {
		return false
	}
	for dir := host.Parent(path); dir != "/"; dir = host.Parent(dir) {
		if n, ok := l[dir]; ok && n.Kind != host.Dir {
			return false
		}
	}
	return true
}

// places are the paths that a policy may name: not what is another thing on each
// of the two systems.
func places(l host.Layout) []string {
	var out []string
	for path := range l {
		if path != "/proc" && path != "/dev" && !host.Beneath(dataVolume, path) && !host.Beneath(path, scratch) && path != baseHelper {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

func genPaths(t *rapid.T, l host.Layout, most int, missing bool) []string {
	var out []string
	for range rapid.IntRange(0, most).Draw(t, "n") {
		path := rapid.SampledFrom(places(l)).Draw(t, "path")
		if missing && rapid.IntRange(0, 5).Draw(t, "missing") == 0 {
			path = host.Join(path, rapid.SampledFrom(names).Draw(t, "name"))
		}
		out = append(out, path)
	}
	return out
}

func genPolicy(t *rapid.T, l host.Layout) protocol.Policy {
	p := protocol.Policy{Network: protocol.Network{Mode: protocol.NetOff}, Scratch: protocol.ScratchTmpfs}
	rare := func(path string) bool { return path == "/" && rapid.IntRange(0, 3).Draw(t, "keep /") > 0 }
	p.WritableRoots = slices.DeleteFunc(genPaths(t, l, 3, false), rare)
	p.ReadableRoots = slices.DeleteFunc(genPaths(t, l, 3, true), rare)
	p.Protected = slices.DeleteFunc(genPaths(t, l, 3, true), func(path string) bool { return path == "/" })
	for _, path := range genPaths(t, l, 2, true) {
		p.Mounts = append(p.Mounts, protocol.Mount{Path: path, Access: rapid.SampledFrom([]protocol.Access{protocol.ReadOnly, protocol.ReadWrite}).Draw(t, "access")})
	}
	if path := rapid.SampledFrom(places(l)).Draw(t, "scratch"); rapid.IntRange(0, 3).Draw(t, "own scratch") == 0 && path != "/" && l[path].Kind == host.Dir {
		p.Scratch = path
	}
	return p
}

// The Linux plan and the macOS profile give the same answer for every path of the
// host; and the profile has the other properties too.
func TestPropertySameAnswerAsLinux(t *testing.T) {
	planned, respelled, compared := 0, 0, map[plan.Effect]int{}
	rapid.Check(t, func(t *rapid.T) {
		l := genLayout(t)
		p := genPolicy(t, l)
		linux, lerr := plan.Build(p, facts("linux", l, p))
		f := facts("darwin", l, p)
		darwin, derr := plan.Build(p, f)
		if (lerr == nil) != (derr == nil) && !scratchDiffers(p, f) {
			t.Fatalf("one plan is refused: linux %v, darwin %v\n%+v", lerr, derr, p)
		}
		if lerr != nil || derr != nil {
			return
		}
		m := mac{p, f, darwin, Options{Layout: f.Layout, Helper: baseHelper, Witness: witness}}
		if e := darwin.At(baseHelper).Effect; e == plan.ReadWrite || e == plan.Masked {
			m.o.Helper = "" // refused otherwise, which has its own test
		}
		planned++
		if slices.ContainsFunc(darwin.Asked, func(q plan.Asked) bool {
			return q.Path != q.Origin.Path && len(f.Layout.Resolve(q.Origin.Path).Links) == 0
		}) {
			respelled++
		}
		if _, err := Render(darwin, m.o); err != nil {
			t.Fatal(err)
		}
		s, err := subjectOf(build(darwin, m.o))
		if err != nil {
			t.Fatal(err)
		}
		e := s.e
		for path, n := range l {
			v := linux.At(path)
			if n.Kind == host.Link || elsewhere(path, v, linux) {
				continue
			}
			compared[v.Effect]++
			want := [2]bool{v.Effect == plan.ReadOnly || v.Effect == plan.ReadWrite, v.Effect == plan.ReadWrite}
			if got := [2]bool{e.Read(path), e.Write(path)}; got != want {
				t.Fatalf("%q: read and write are %v, on Linux %s by %s %q\n%s", path, got, v.Effect, v.Op.Class, v.Op.Path, dump(m, linux))
			}
		}
		for _, property := range properties {
			if err := property.holds(m, s); err != nil {
				t.Fatalf("%s: %v\n%s", property.name, err, dump(m, linux))
			}
		}
	})
	if (planned < wantPlanned || respelled < wantPlanned/10) && flag.Lookup("rapid.checks").Value.String() == policies {
		t.Errorf("%d policies had a plan, %d of them by another spelling; want %d and %d", planned, respelled, wantPlanned, wantPlanned/10)
	}
	for _, e := range []plan.Effect{plan.None, plan.ReadOnly, plan.ReadWrite, plan.Masked} {
		if compared[e] == 0 {
			t.Errorf("no path was ever %s", e)
		}
	}
	t.Logf("%d plans, %d by another spelling; paths by effect: %v", planned, respelled, compared)
}

// elsewhere: the private scratch hides Linux's own /tmp, where a mask may also cover
// more than is protected, and is another directory on macOS; dyld needs "/"; /proc and /dev are no host directories on Linux; the helper
// is granted by name.
func elsewhere(path string, v plan.View, linux plan.Plan) bool {
	if v.Effect == plan.Masked {
		v = plan.Plan{Ops: linux.Ops[:v.Index]}.At(path)
	}
	return v.Op.Class == plan.ScratchTmpfs || host.Beneath(dataVolume, path) || // "/" and the base view of one of the two
		host.Beneath(path, "/proc") || host.Beneath(path, "/dev") ||
		host.Beneath(path, scratch) || path == baseHelper
}

// scratchDiffers: where the policy protects or mounts the place of only one of the
// two scratches, only one of the two can be refused for it.
func scratchDiffers(p protocol.Policy, f host.Facts) bool {
	names := slices.Clone(p.Protected)
	for _, m := range p.Mounts {
		names = append(names, m.Path)
	}
	return slices.ContainsFunc(names, func(path string) bool {
		at := f.Layout.Resolve(path).Path
		return host.Beneath(at, "/private/tmp") || host.Beneath(scratch, at)
	})
}

func dump(m mac, linux plan.Plan) string {
	var s strings.Builder
	for _, op := range linux.Ops {
		fmt.Fprintf(&s, "linux %s %q\n", op.Class, op.Path)
	}
	p := write(build(m.plan, m.o))
	_, last, _ := strings.Cut(p.Text, "(allow file-read-metadata")
	fmt.Fprintf(&s, "%+v\n%v\n%s", m.p, p.Params, last)
	return s.String()
}
