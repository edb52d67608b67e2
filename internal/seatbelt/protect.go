package seatbelt

import (
	"strings"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// pins keeps names in place: of every writable region itself, and of every directory
// between it and what is narrower inside. Without that, renaming a parent would take
// the narrower path away from its rule, and renaming another directory to the name
// of a missing parent would bring the path in.
func (b *builder) pins(p plan.Plan) {
	seen := map[string]bool{}
	r := deny(moveOps)
	r.note = "names that must stay"
	add := func(f filter) {
		if !seen[f.kind+f.value] {
			seen[f.kind+f.value] = true
			r.filters = append(r.filters, f)
		}
	}
	for _, op := range p.Ops {
		if op.Class == plan.Pin || op.Origin.List == listPin || writes(op.Class) {
			add(literal(op.Path))
		}
		if isMask(op) || op.Class == plan.MountRO || op.Class == plan.Readable || op.Class == plan.SystemRO {
			b.parents(op.Path, add)
		}
	}
	for _, dir := range b.o.UserDirs {
		add(literal(dir))
	}
	if b.o.Witness != "" {
		b.parents(b.o.Witness, add)
	}
	for _, q := range p.Asked {
		if q.Origin.List != listProtected {
			continue
		}
		b.parents(q.Path, add)
		for _, hop := range b.o.Layout.Resolve(q.Origin.Path).Links {
			if b.inWritable(hop.Path) {
				add(literal(hop.Path)) // re-pointed, the link would lead elsewhere
			}
			b.parents(hop.Path, add)
		}
	}
	if len(r.filters) > 0 {
		b.add(r)
	}
}

// parents pins what lies between a writable region and path. A parent that does not
// exist is pinned under every spelling that a case-insensitive volume takes for it:
// the rule would compare the spelling that the command creates.
func (b *builder) parents(path string, add func(filter)) {
	if path == "/" {
		return
	}
	for dir := host.Parent(path); dir != "/" && b.inWritable(dir); dir = host.Parent(dir) {
		add(literal(dir))
		if n := b.o.Layout[dir]; n.Kind != host.Dir && dir != path {
			add(filter{kind: "regex", value: "^" + folded(dir) + "$"})
		}
	}
}

// dataVolume is where macOS mounts the volume that "/Users", "/private" and others are
// firmlinks into. The kernel calls what is there by its usual name.
const dataVolume = "/System/Volumes/Data"

// bothNames are a path with and without the data volume's prefix. The kernel uses one
// of them; denying the other costs nothing and holds should it ever use that.
func bothNames(path string) []string {
	if usual, below := strings.CutPrefix(path, dataVolume+"/"); below {
		return []string{"/" + usual, path}
	}
	if host.Beneath(dataVolume, path) {
		return []string{path} // covers it already, or is "/"
	}
	return []string{path, dataVolume + path}
}

// protect is the end of the profile: what must be neither read nor written, under
// its resolved name, under the name that the policy has for it, and, where it does
// not exist yet, under any letter case.
func (b *builder) protect(p plan.Plan, masks []plan.Op) {
	seen := map[string]bool{}
	hide := func(path string) {
		for _, name := range bothNames(path) {
			if !seen[name] && name != "/" {
				seen[name] = true
				b.hide(name, true)
			}
		}
	}
	for _, op := range masks {
		hide(op.Path)
	}
	for _, q := range p.Asked {
		if q.Origin.List != listProtected {
			continue
		}
		if q.State != plan.Barred { // else q.Path is the file that is in its way
			hide(q.Path)
		}
		hide(host.Clean("/", q.Origin.Path))
		if q.Node.Kind <= host.Denied { // what exists and was seen has the disk's spelling
			r := deny(allOps, filter{kind: "regex", value: "^" + folded(q.Path) + "(/|$)"})
			r.note, r.guard = "the same name on a case-insensitive volume", true
			b.add(r)
		}
	}
	if b.o.Witness != "" {
		hide(b.o.Witness)
	}
}
