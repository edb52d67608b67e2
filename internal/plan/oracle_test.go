package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// oracle answers from the policy's words alone what a command may do at an
// existing physical path: no operations, no order.
type oracle struct {
	d         drawn
	protected []string
}

func newOracle(d drawn) oracle {
	o := oracle{d: d}
	for _, path := range d.p.Protected {
		if at := d.tr.walk(host.Layout{}, path); at != "" {
			o.protected = append(o.protected, at)
		}
	}
	return o
}

func (o oracle) hidden(path string) bool {
	return slices.ContainsFunc(o.protected, func(p string) bool { return host.Beneath(path, p) })
}

// claim is a grant of the oracle: the longest path wins, then the rank.
type claim struct {
	path string
	rank int
	eff  plan.Effect
}

func (o oracle) at(path string) plan.Effect {
	if o.hidden(path) || o.service(path) {
		return plan.Masked
	}
	best := claim{eff: plan.None}
	try := func(c claim) {
		if c.path != "" && host.Beneath(path, c.path) && (len(c.path) > len(best.path) || len(c.path) == len(best.path) && c.rank > best.rank) {
			best = c
		}
	}
	for _, m := range o.d.p.Mounts {
		try(claim{o.d.tr.walk(host.Layout{}, m.Path), 0, map[protocol.Access]plan.Effect{protocol.ReadOnly: plan.ReadOnly, protocol.ReadWrite: plan.ReadWrite}[m.Access]})
	}
	if best.path != "" {
		return best.eff
	}
	if host.Beneath(path, "/proc") || host.Beneath(path, "/dev") {
		return plan.Private
	}
	for _, r := range o.d.p.ReadableRoots {
		try(claim{o.d.tr.walk(host.Layout{}, r), 2, plan.ReadOnly})
	}
	for _, r := range o.d.p.WritableRoots {
		try(claim{o.d.tr.walk(host.Layout{}, r), 3, plan.ReadWrite})
	}
	if o.d.p.Scratch == protocol.ScratchTmpfs {
		try(claim{"/tmp", 4, plan.Private})
	} else {
		try(claim{o.d.tr.walk(host.Layout{}, o.d.p.Scratch), 3, plan.ReadWrite})
	}
	for _, d := range []string{"/usr", "/etc"} {
		try(claim{d, 1, plan.ReadOnly})
	}
	return best.eff
}

// service is the one service place of the generated trees.
func (o oracle) service(path string) bool {
	const place = "/run/user/1000"
	if !host.Beneath(path, place) || !o.shown(place) {
		return false
	}
	for _, r := range append(append([]string{}, o.d.p.WritableRoots...), o.d.p.ReadableRoots...) {
		if at := o.d.tr.walk(host.Layout{}, r); at != "" && host.Beneath(at, place) {
			return false
		}
	}
	if o.d.p.Scratch != protocol.ScratchTmpfs && host.Beneath(o.d.tr.walk(host.Layout{}, o.d.p.Scratch), place) {
		return false
	}
	for _, m := range o.d.p.Mounts {
		if at := o.d.tr.walk(host.Layout{}, m.Path); at != "" && (at == place || host.Beneath(path, at)) {
			return false
		}
	}
	return true
}

// shown says whether a root lies above the place.
func (o oracle) shown(place string) bool {
	roots := append(append([]string{}, o.d.p.WritableRoots...), o.d.p.ReadableRoots...)
	if o.d.p.Scratch != protocol.ScratchTmpfs {
		roots = append(roots, o.d.p.Scratch)
	}
	return slices.ContainsFunc(roots, func(r string) bool {
		at := o.d.tr.walk(host.Layout{}, r)
		return at != "" && host.Beneath(place, at)
	})
}

func TestPropertyViewIsThePolicy(t *testing.T) {
	seen := map[plan.Effect]int{}
	rapid.Check(t, func(t *rapid.T) {
		d, ok := draw(t)
		if !ok {
			return
		}
		o := newOracle(d)
		for path, n := range d.tr {
			if n.Kind == host.Link {
				continue
			}
			got, want := d.pl.At(path), o.at(path)
			seen[got.Effect]++
			if !agree(got.Effect, want) {
				t.Fatalf("At(%q) = %s by %s %q, want %s\n%s", path, got.Effect, got.Op.Class, got.Op.Path, want, dump(d))
			}
		}
	})
	for _, e := range []plan.Effect{plan.None, plan.ReadOnly, plan.ReadWrite, plan.Masked, plan.Private} {
		if seen[e] == 0 {
			t.Errorf("no path was ever %s", e)
		}
	}
}

// agree: a protected path outside every grant needs no mask, and below a private
// scratch a mask may cover more than was asked, since nothing of the host is there.
func agree(got, want plan.Effect) bool {
	if got == want {
		return true
	}
	shut := func(e plan.Effect) bool { return e == plan.Masked || e == plan.None || e == plan.Private }
	return shut(got) && shut(want) && (want == plan.Masked || got == plan.Masked)
}

func dump(d drawn) string {
	var b strings.Builder
	for _, op := range d.pl.Ops {
		fmt.Fprintf(&b, "%s %q %q\n", op.Class, op.Path, op.Origin.Name())
	}
	fmt.Fprintf(&b, "%+v\n", d.p)
	return b.String()
}

// Neither by its spelling nor through any link of the host, and not by making it
// anew: every directory between the writable region and the mask is a mount point.
func TestPropertyProtected(t *testing.T) {
	masked, absent := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d, ok := draw(t)
		if !ok {
			return
		}
		o := newOracle(d)
		for path := range d.tr {
			at := d.tr.walk(host.Layout{}, path)
			if at == "" || !o.hidden(at) {
				continue
			}
			if e := d.pl.At(at).Effect; e == plan.ReadOnly || e == plan.ReadWrite {
				t.Fatalf("%q leads to the protected %q, which is %s\n%s", path, at, e, dump(d))
			}
		}
		for _, path := range d.p.Protected {
			checkUncreatable(t, d, path)
		}
		a := plan.AuditOf(d.pl, d.p)
		if a.Mask+a.Absent != len(d.p.Protected) {
			t.Fatalf("%d masked and %d absent of %d: %v\n%s", a.Mask, a.Absent, len(d.p.Protected), a.Skips, dump(d))
		}
		masked, absent = masked+a.Mask, absent+a.Absent
	})
	if masked == 0 || absent == 0 {
		t.Errorf("masked %d, absent %d: one of the two never happened", masked, absent)
	}
}

func checkUncreatable(t *rapid.T, d drawn, spelled string) {
	res := d.f.Layout.Resolve(spelled)
	v := d.pl.At(res.Path)
	if res.Err == nil && v.Effect == plan.ReadWrite {
		t.Fatalf("the protected %q can be made\n%s", res.Path, dump(d))
	}
	points := map[string]plan.Op{}
	for _, op := range d.pl.Ops {
		if op.Class != plan.LinkTo {
			points[op.Path] = op
		}
	}
	for dir := host.Parent(v.Op.Path); v.Effect == plan.Masked && dir != "/"; dir = host.Parent(dir) {
		if d.pl.At(dir).Effect != plan.ReadWrite {
			return // nothing can be renamed here
		}
		op, ok := points[dir]
		if !ok {
			t.Fatalf("%q above the mask %q can be renamed\n%s", dir, v.Op.Path, dump(d))
		}
		if op.Class != plan.Pin {
			return
		}
	}
}

// The spelling that the broker used works inside: a walk through the view, with
// the links that are visible there, ends at the same place.
func TestPropertySpellingsWork(t *testing.T) {
	through := 0
	rapid.Check(t, func(t *rapid.T) {
		d, ok := draw(t)
		if !ok {
			return
		}
		o := newOracle(d)
		view := tree{}
		for path, n := range d.tr {
			if e := d.pl.At(path).Effect; n.Kind != host.Link || e == plan.ReadOnly || e == plan.ReadWrite {
				view[path] = n
			}
		}
		for _, op := range d.pl.Ops {
			if op.Class == plan.LinkTo {
				view[op.Path] = host.Node{Kind: host.Link, Target: op.Target}
			}
		}
		for _, path := range append(append([]string{}, d.p.WritableRoots...), d.p.ReadableRoots...) {
			res := d.f.Layout.Resolve(path)
			if e := d.pl.At(res.Path).Effect; res.Err != nil || res.Node.Kind == host.Missing || e != plan.ReadOnly && e != plan.ReadWrite {
				continue
			}
			if hopHidden(o, res) {
				continue
			}
			if len(res.Links) > 0 {
				through++
			}
			if got := view.walk(host.Layout{}, path); got != res.Path {
				t.Fatalf("%q leads to %q inside, not to %q\n%s", path, got, res.Path, dump(d))
			}
		}
	})
	if through == 0 {
		t.Error("no root was ever reached through a link")
	}
}

// hopHidden: a link that lies in something masked is hidden with it.
func hopHidden(o oracle, res host.Resolution) bool {
	return slices.ContainsFunc(res.Links, func(h host.LinkHop) bool {
		return o.hidden(h.Path) || o.d.pl.At(host.Parent(h.Path)).Effect == plan.Masked
	})
}
