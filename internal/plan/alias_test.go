package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// second is a bind mount of the host: what lies below from shows below to as well.
type second struct{ from, to string }

// genSecond gives one directory of the tree another name.
func genSecond(t *rapid.T, tr tree) second {
	var dirs []string
	for path, n := range tr {
		if n.Kind == host.Dir && len(path) > 1 && !host.Beneath(path, "/proc") && !host.Beneath(path, "/dev") {
			dirs = append(dirs, path)
		}
	}
	slices.Sort(dirs)
	m := second{rapid.SampledFrom(dirs).Draw(t, "from"), rapid.SampledFrom([]string{"/mnt/m", "/srv/m"}).Draw(t, "to")}
	tr.dir(host.Parent(m.to))
	for path, n := range tr {
		if host.Beneath(path, m.from) && !host.Beneath(path, m.to) {
			tr[m.to+path[len(m.from):]] = n
		}
	}
	return m
}

// other gives the second name of a physical path, or of the part of it that has one.
func (m second) other(path string) string {
	switch {
	case host.Beneath(path, m.to):
		return m.from + path[len(m.to):]
	case host.Beneath(path, m.from):
		return m.to + path[len(m.from):]
	case host.Beneath(m.from, path) && !host.Beneath(m.to, path):
		return m.to
	case host.Beneath(m.to, path):
		return m.from
	}
	return ""
}

// A protected path cannot be read, written or made under either of its names.
func TestPropertySecondNames(t *testing.T) {
	planned, masked := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		d := drawn{tr: genTree(t)}
		m := genSecond(t, d.tr)
		d.p = genPolicy(t, d.tr)
		d.f = d.tr.facts(d.p)
		d.f.Aliases = host.Aliases{}
		var names []string
		for _, path := range plan.Narrow(d.p) {
			res := d.f.Layout.Resolve(path)
			if res.Err != nil {
				continue
			}
			if name := m.other(res.Path); name != "" && !host.Beneath(name, res.Path) {
				d.f.Aliases[path] = []string{name}
				names = append(names, name)
			}
		}
		d.f.Layout = d.tr.survey(append(plan.Paths(d.p, d.f), names...))
		var err error
		if d.pl, err = plan.Build(d.p, d.f); err != nil {
			return
		}
		planned++
		for _, spelled := range d.p.Protected {
			for _, name := range d.f.Aliases[spelled] {
				masked++
				checkUncreatable(t, d, name)
				for path := range d.tr {
					if e := d.pl.At(path).Effect; host.Beneath(path, name) && (e == plan.ReadOnly || e == plan.ReadWrite) {
						t.Fatalf("%q, another name of %q in protected %q, is %s\n%s", path, name, spelled, e, dump(d))
					}
				}
			}
		}
		a := plan.AuditOf(d.pl, d.p)
		if a.Mask+a.Absent != len(d.p.Protected) {
			t.Fatalf("%d masked and %d absent of %d: %v\n%s", a.Mask, a.Absent, len(d.p.Protected), a.Skips, dump(d))
		}
	})
	if planned < 500 || masked < 100 {
		t.Errorf("only %d plans, %d second names", planned, masked)
	}
}

// A second name that could not be looked at refuses what would show it, and nothing else.
func TestSecondNameThatCannotBeSeen(t *testing.T) {
	tr := newTree()
	tr.file("/srv/keys/key")
	tr.dir("/srv/ws")
	tr.dir("/mnt/broken")
	for root, want := range map[string]bool{"/srv/ws": false, "/mnt": true} {
		for _, writable := range []bool{false, true} {
			p := policy(func(p *protocol.Policy) {
				p.Protected = []string{"/srv/keys"}
				if writable {
					p.WritableRoots = []string{root}
				} else {
					p.ReadableRoots = []string{root}
				}
			})
			f := tr.facts(p)
			f.Layout = tr.survey(append(plan.Paths(p, f), "/mnt/broken"))
			f.Aliases = host.Aliases{"/srv/keys": {"/mnt/broken/keys"}}
			delete(f.Layout, "/mnt/broken/keys") // as after an I/O error
			var refusal *plan.Refusal
			if _, err := plan.Build(p, f); errors.As(err, &refusal) != want || want && !strings.Contains(err.Error(), "/mnt/broken/keys") {
				t.Errorf("%s, writable %v: %v", root, writable, err)
			}
		}
	}
}
