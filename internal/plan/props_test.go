package plan_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// TestMain runs the properties over more cases than the default.
func TestMain(m *testing.M) {
	flag.Parse()
	set := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if !set["rapid.checks"] {
		if err := flag.Set("rapid.checks", "2600"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

var names = []string{"a", "b", "c", ".git", "hooks", "config", "commondir", "w"}

// genTree draws a host with links, files and every kind of node.
func genTree(t *rapid.T) tree {
	tr := newTree()
	tops := []string{"/home/u", "/tmp", "/srv", "/", "/var/tmp", "/etc", "/run/user/1000"}
	for range rapid.IntRange(3, 14).Draw(t, "nodes") {
		path := rapid.SampledFrom(tops).Draw(t, "top")
		for range rapid.IntRange(1, 3).Draw(t, "depth") {
			path = host.Join(path, rapid.SampledFrom(names).Draw(t, "name"))
		}
		if !fits(tr, path) {
			continue
		}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			tr.file(path)
		case 1, 2:
			tr.link(path, genTarget(t, tr))
		case 3:
			tr.put(path, host.Node{Kind: rapid.SampledFrom([]host.Kind{host.Socket, host.Fifo}).Draw(t, "special")})
		default:
			tr.dir(path)
		}
	}
	return tr
}

// fits says whether path can be added: all its parents are directories or absent.
func fits(tr tree, path string) bool {
	if _, ok := tr[path]; ok {
		return false
	}
	for dir := host.Parent(path); dir != "/"; dir = host.Parent(dir) {
		if n, ok := tr[dir]; ok && n.Kind != host.Dir {
			return false
		}
	}
	return true
}

func genTarget(t *rapid.T, tr tree) string {
	switch rapid.IntRange(0, 4).Draw(t, "target") {
	case 0:
		return "../" + rapid.SampledFrom(names).Draw(t, "name")
	case 1:
		return rapid.SampledFrom(names).Draw(t, "name")
	case 2:
		return "/srv/gone/" + rapid.SampledFrom(names).Draw(t, "name")
	}
	return genPath(t, tr)
}

// genPath draws an existing path, now and then through a link or one that is
// not there.
func genPath(t *rapid.T, tr tree) string {
	all := []string{}
	for path := range tr {
		if path != "/proc" && path != "/dev" {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	path := rapid.SampledFrom(all).Draw(t, "path")
	if tr[path].Kind == host.Link && rapid.Bool().Draw(t, "deeper") || rapid.IntRange(0, 7).Draw(t, "missing") == 0 {
		path = host.Join(path, rapid.SampledFrom(names).Draw(t, "name"))
	}
	return path
}

func genPaths(t *rapid.T, tr tree, most int) []string {
	var out []string
	for range rapid.IntRange(0, most).Draw(t, "n") {
		out = append(out, genPath(t, tr))
	}
	return out
}

func genPolicy(t *rapid.T, tr tree) protocol.Policy {
	return policy(func(p *protocol.Policy) {
		p.WritableRoots = slices.DeleteFunc(genPaths(t, tr, 4), func(path string) bool {
			return tr.walk(host.Layout{}, path) == "" || path == "/" && rapid.IntRange(0, 3).Draw(t, "keep /") > 0
		})
		p.ReadableRoots = genPaths(t, tr, 3)
		p.Protected = slices.DeleteFunc(genPaths(t, tr, 4), func(path string) bool { return path == "/" })
		for _, path := range genPaths(t, tr, 2) {
			p.Mounts = append(p.Mounts, protocol.Mount{Path: path, Access: rapid.SampledFrom([]protocol.Access{protocol.ReadOnly, protocol.ReadWrite}).Draw(t, "access")})
		}
		if path := genPath(t, tr); rapid.IntRange(0, 3).Draw(t, "scratch") == 0 && tr[tr.walk(host.Layout{}, path)].Kind == host.Dir {
			p.Scratch = path
		}
	})
}

// drawn is one case that has a plan.
type drawn struct {
	tr tree
	p  protocol.Policy
	f  host.Facts
	pl plan.Plan
}

// draw generates until a case has a plan; refusals are checked on the way.
func draw(t *rapid.T) (drawn, bool) {
	var d drawn
	d.tr = genTree(t)
	d.p = genPolicy(t, d.tr)
	d.f = d.tr.facts(d.p)
	var err error
	d.pl, err = plan.Build(d.p, d.f)
	if err != nil {
		r, ok := err.(*plan.Refusal)
		if !ok || r.List == "" || r.Path == "" || strings.Contains(r.Reason, "defect") {
			t.Fatalf("a refusal that names nothing: %v", err)
		}
		return d, false
	}
	return d, true
}

func isMask(op plan.Op) bool  { return op.Class == plan.MaskDir || op.Class == plan.MaskFile }
func isMount(op plan.Op) bool { return op.Class == plan.MountRO || op.Class == plan.MountRW }

func TestPropertyOrder(t *testing.T) {
	planned := 0
	rapid.Check(t, func(t *rapid.T) {
		d, ok := draw(t)
		if !ok {
			return
		}
		planned++
		masked := false
		at := map[string]int{}
		for i, op := range d.pl.Ops {
			masked = masked || isMask(op)
			if masked && !isMask(op) && !isMount(op) && op.Class != plan.Seal {
				t.Fatalf("%s %q comes after a mask", op.Class, op.Path)
			}
			if op.Class == plan.Seal && i != len(d.pl.Ops)-1 {
				t.Fatalf("the seal is not last")
			}
			if op.Class != plan.Seal && !isMount(op) {
				if _, twice := at[op.Path]; twice && !isMask(op) {
					t.Fatalf("two grants at %q", op.Path)
				}
				at[op.Path] = i
			}
		}
		checkParents(t, d)
		checkPlaces(t, d)
	})
	if planned < 500 {
		t.Errorf("only %d cases had a plan", planned)
	}
}

// checkParents wants a parent before every descendant among the grants.
func checkParents(t *rapid.T, d drawn) {
	for i, op := range d.pl.Ops {
		if isMask(op) || isMount(op) || op.Class == plan.Seal {
			continue
		}
		for _, later := range d.pl.Ops[i+1:] {
			if op.Path != later.Path && host.Beneath(op.Path, later.Path) && !isMask(later) && !isMount(later) && later.Class != plan.Seal {
				t.Fatalf("%q comes before its parent %q", op.Path, later.Path)
			}
		}
	}
}

// checkPlaces wants every destination canonical and its mount point possible:
// in a tmpfs of the jail bubblewrap makes it, elsewhere it must be there, and
// below a finished mask nothing but an explicit mount can be made.
func checkPlaces(t *rapid.T, d drawn) {
	for i, op := range d.pl.Ops {
		if op.Class == plan.LinkTo || op.Path == "/" {
			continue
		}
		for dir := op.Path; dir != "/"; dir = host.Parent(dir) {
			if d.tr[dir].Kind == host.Link {
				t.Fatalf("%q has the link %q as a component", op.Path, dir)
			}
		}
		around := plan.Plan{Ops: d.pl.Ops[:i]}.At(op.Path)
		switch around.Op.Class {
		case plan.RootTmpfs, plan.ScratchTmpfs, plan.Dev, plan.Proc:
		case plan.MaskDir:
			if !isMount(op) {
				t.Fatalf("%s %q lies below the mask %q", op.Class, op.Path, around.Op.Path)
			}
		default:
			if _, ok := d.tr[op.Path]; !ok && !op.Placeholder {
				t.Fatalf("%s %q has no mount point", op.Class, op.Path)
			}
			if op.Placeholder && (around.Effect != plan.ReadWrite || d.tr[host.Parent(op.Path)].Kind != host.Dir) {
				t.Fatalf("the placeholder %q cannot be made", op.Path)
			}
		}
	}
}

func TestPropertyPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, ok := draw(t)
		q := d.p
		q.WritableRoots = rapid.Permutation(d.p.WritableRoots).Draw(t, "writable")
		q.ReadableRoots = rapid.Permutation(d.p.ReadableRoots).Draw(t, "readable")
		q.Protected = rapid.Permutation(d.p.Protected).Draw(t, "protected")
		q.Mounts = rapid.Permutation(d.p.Mounts).Draw(t, "mounts")
		other, err := plan.Build(q, d.f)
		if ok != (err == nil) {
			t.Fatalf("the order decides about a refusal: %v", err)
		}
		if ok && !slices.Equal(plain(d.pl), plain(other)) {
			t.Fatalf("the order shows:\n%v\n%v", plain(d.pl), plain(other))
		}
	})
}

// plain is the plan without the indices of lists.
func plain(p plan.Plan) []plan.Op {
	out := slices.Clone(p.Ops)
	for i := range out {
		out[i].Origin.Index = 0
	}
	return out
}
