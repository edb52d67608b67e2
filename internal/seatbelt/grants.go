package seatbelt

import (
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// builder collects the rules of one profile.
type builder struct {
	o     Options
	rules []rule
	open  map[string]bool // regions that have been granted for writing
}

// listProtected and listPin are the plan's words for where an operation came from.
const (
	listProtected = "protected"
	listPin       = "pin"
)

// build is the whole profile as a list. Its order is its meaning: the last rule that
// matches decides, so what is broad comes first and what is protected last.
func build(p plan.Plan, o Options) []rule {
	b := &builder{o: o, open: map[string]bool{}}
	b.rules = preamble(o.NetFull)
	b.ways(p)
	b.userDirs()
	var masks, mounts, inDev, protected []plan.Op
	for _, op := range p.Ops {
		switch {
		case isMask(op) && op.Origin.List == listProtected:
			protected = append(protected, op)
		case isMask(op):
			masks = append(masks, op)
		case op.Class == plan.MountRO || op.Class == plan.MountRW:
			mounts = append(mounts, op)
		case host.Beneath(op.Path, "/dev"):
			inDev = append(inDev, op)
		default:
			b.grant(op)
		}
	}
	b.add(deviceRules()...)
	for _, op := range inDev {
		if op.Path != "/dev" {
			b.grant(op)
		}
	}
	for _, op := range masks {
		b.hide(op.Path, false)
	}
	for _, op := range mounts {
		b.grant(op)
	}
	b.helper()
	b.pins(p)
	b.protect(p, protected)
	return b.rules
}

func isMask(op plan.Op) bool { return op.Class == plan.MaskDir || op.Class == plan.MaskFile }

func (b *builder) add(r ...rule) { b.rules = append(b.rules, r...) }

// grant opens one region, with its whole truth: something read-only inside a
// writable region takes the writing away again, and something writable inside that
// gives it back.
func (b *builder) grant(op plan.Op) {
	if !grants(op.Class) {
		return
	}
	f := region(op.Path, op.Node.Kind)
	if writes(op.Class) {
		b.write(op.Path, f)
		return
	}
	b.add(allow(readOps, f))
	if b.inWritable(op.Path) || op.Class == plan.MountRO { // a mount covers what is writable below it, too
		// Below a file are its other forks ("/..namedfork/rsrc").
		all := filter{kind: "subpath", value: op.Path}
		b.add(deny(writeOps, all), deny(listenOps, local(f)), deny(connectOps, remote(f)))
	}
	if op.Class == plan.MountRO {
		b.add(allow(connectOps, remote(f))) // a socket that the policy names
	}
	if op.Path == "/System" || op.Path == "/" {
		b.add(rule{ops: allOps, note: "the data volume under its second name", filters: []filter{{raw: `(subpath "` + dataVolume + `")`}}})
	}
}

// write opens a region for everything.
func (b *builder) write(path string, f filter) {
	b.open[path] = true
	b.add(allow(allOps, f), allow(listenOps, local(f)), allow(connectOps, remote(f)))
}

// inWritable says whether a writable region lies at or above path.
func (b *builder) inWritable(path string) bool {
	for dir := path; ; dir = host.Parent(dir) {
		if b.open[dir] {
			return true
		}
		if dir == "/" {
			return false
		}
	}
}

// ways lets a process look at every link and directory on the way to what is
// granted, and at nothing in them: path look-up and realpath(3) ask for it.
func (b *builder) ways(p plan.Plan) {
	seen := map[string]bool{"/": true}
	r := rule{allow: true, ops: metaOps, note: "on the way to what is granted"}
	up := func(path string) {
		for dir := path; !seen[dir]; dir = host.Parent(dir) {
			seen[dir] = true
			r.filters = append(r.filters, literal(dir))
		}
	}
	for _, link := range alwaysLinks {
		up(link)
	}
	for _, op := range p.Ops {
		if op.Class == plan.LinkTo {
			up(op.Path)
		} else if grants(op.Class) && op.Path != "/" {
			up(host.Parent(op.Path))
		}
	}
	for _, path := range append(b.o.UserDirs[:len(b.o.UserDirs):len(b.o.UserDirs)], b.o.Helper) {
		if path != "" {
			up(host.Parent(path))
		}
	}
	b.add(r)
}

func (b *builder) userDirs() {
	for _, dir := range b.o.UserDirs {
		b.write(dir, filter{kind: "subpath", value: dir})
	}
}

// helper is what stage 2 is executed from.
func (b *builder) helper() {
	if b.o.Helper != "" {
		b.add(rule{allow: true, ops: readOps, note: "stage 2", filters: []filter{literal(b.o.Helper)}})
	}
}

// hide denies a path with all below it, for files and for Unix sockets.
func (b *builder) hide(path string, guard bool) {
	here, below := literal(path), filter{kind: "subpath", value: path}
	for _, r := range []rule{
		deny(allOps, here, below),
		deny(connectOps, remote(below)),
		deny(listenOps, local(below)),
	} {
		r.guard = guard
		b.add(r)
	}
}
