package seatbelt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/seatbelt/eval"
)

// The properties of a profile, as functions of the list of its rules, so that a
// changed list can be put to them.
type property struct {
	name  string
	holds func(m mac, s subject) error
}

// subject is a list of rules with its profile as written and as read.
type subject struct {
	rules []rule
	text  string
	e     eval.Profile
}

func subjectOf(rules []rule) (subject, error) {
	p := write(rules)
	e, err := evalOf(p)
	return subject{rules, p.Text, e}, err
}

func (p property) of(m mac, rules []rule) error {
	s, err := subjectOf(rules)
	if err != nil {
		return err
	}
	return p.holds(m, s)
}

var properties = []property{
	{"protected denies are last", protectedLast},
	{"protected paths are out of reach", outOfReach},
	{"ancestors cannot be renamed", ancestorsStay},
	{"no unresolved path is granted", resolvedOnly},
	{"paths are parameters", parametersOnly},
	{"devices by name", devicesByName},
	{"network by mode", networkByMode},
}

// protectedLast wants nothing after the denies of what is protected.
func protectedLast(_ mac, s subject) error {
	rules := s.rules
	first := slices.IndexFunc(rules, func(r rule) bool { return r.guard })
	if first < 0 {
		return fmt.Errorf("nothing is protected")
	}
	for _, r := range rules[first:] {
		if !r.guard || r.allow {
			return fmt.Errorf("%v comes after the denies of what is protected", r)
		}
	}
	return nil
}

// guarded lists what the policy protects, and the witness.
func guarded(m mac) []string {
	out := []string{m.o.Witness}
	for _, q := range m.plan.Asked {
		if q.Origin.List == listProtected && q.State != plan.Barred {
			out = append(out, q.Path)
		}
	}
	return out
}

// ligatures spells a name as APFS takes it for the same.
var ligatures = strings.NewReplacer("ss", "\u00df", "fi", "\ufb01", "s", "\u017f", "k", "\u212a")

// outOfReach asks every operation on what is protected, at it and below.
func outOfReach(m mac, s subject) error {
	e := s.e
	for _, path := range guarded(m) {
		spellings := []string{path, path + "/below/it"}
		if m.o.Layout.Resolve(path).Node.Kind == host.Missing {
			there := host.Parent(path) // what exists keeps its case: the kernel knows its name
			for m.o.Layout[there].Kind != host.Dir {
				there = host.Parent(there)
			}
			loud := there + strings.ToUpper(strings.TrimPrefix(path, there))
			spellings = append(spellings, loud, loud+"/x", there+ligatures.Replace(strings.TrimPrefix(path, there)))
		}
		if !strings.HasPrefix(path, dataVolume) {
			spellings = append(spellings, dataVolume+path, dataVolume+path+"/below/it")
		}
		for _, p := range spellings {
			for _, op := range []string{"file-read-data", "file-read-metadata", "file-write-data", "file-write-create", "file-write-unlink", "file-link", "process-exec", "file-map-executable"} {
				if e.Allows(eval.Query{Op: op, Path: p}) {
					return fmt.Errorf("%s of the protected %q is allowed", op, p)
				}
			}
			if strings.HasPrefix(p, path) && e.Allows(eval.Query{Op: "network-outbound", Socket: "unix", Path: p}) {
				return fmt.Errorf("connecting to the protected %q is allowed", p)
			}
		}
	}
	return nil
}

// ancestorsStay: no directory between a writable region and something protected,
// nor the region itself, can be moved away or be moved into place.
func ancestorsStay(m mac, s subject) error {
	e := s.e
	for _, path := range guarded(m) {
		for dir := host.Parent(path); dir != "/" && e.Write(dir); dir = host.Parent(dir) {
			for _, op := range moveOps {
				if e.Allows(eval.Query{Op: op, Path: dir}) {
					return fmt.Errorf("%s of %q, above the protected %q, is allowed", op, dir, path)
				}
			}
		}
	}
	for _, op := range m.plan.Ops {
		if writes(op.Class) && e.Allows(eval.Query{Op: "file-write-unlink", Path: op.Path}) {
			return fmt.Errorf("the writable region %q itself can be removed", op.Path)
		}
	}
	return nil
}

// resolvedOnly looks at every path of every allow rule but those for metadata.
func resolvedOnly(m mac, s subject) error {
	for _, r := range s.rules {
		if !r.allow || slices.Equal(r.ops, metaOps) {
			continue
		}
		for _, f := range r.filters {
			if f.kind == "" {
				continue
			}
			if res := m.o.Layout.Resolve(f.value); res.Path != f.value {
				return fmt.Errorf("%q is granted, and resolves to %q", f.value, res.Path)
			}
		}
	}
	return nil
}

// paths finds quoted paths in a profile's text.
var paths = regexp.MustCompile(`"(/[^"]*)"`)

// parametersOnly allows in the text only what stands in this package's own tables.
func parametersOnly(_ mac, s subject) error {
	own := []string{"/", "/dev", "/dev/fd", "/System/Volumes/Data"}
	for _, d := range devices {
		own = append(own, d.path)
	}
	for _, found := range paths.FindAllStringSubmatch(s.text, -1) {
		if !slices.Contains(own, found[1]) {
			return fmt.Errorf("the path %q is in the text", found[1])
		}
	}
	return nil
}

// devicesByName: of /dev only the named nodes, whatever else is granted.
func devicesByName(m mac, s subject) error {
	e := s.e
	for _, path := range []string{"/dev/disk0", "/dev/rdisk0s1", "/dev/ttys003", "/dev/bpf0", "/dev/null/x", "/dev/new"} {
		if m.plan.At(path).Op.Class == plan.MountRW {
			continue
		}
		if e.Read(path) || e.Write(path) {
			return fmt.Errorf("%q can be used", path)
		}
	}
	for _, d := range devices {
		if slices.Contains(guarded(m), d.path) {
			continue
		}
		if !e.Read(d.path) || !e.Write(d.path) || e.Allows(eval.Query{Op: "file-write-unlink", Path: d.path}) {
			return fmt.Errorf("%q cannot be used, or can be removed", d.path)
		}
	}
	tty := eval.Query{Op: "file-write-data", Path: "/dev/ttys009", Extension: "com.apple.sandbox.pty"}
	if !e.Allows(tty) {
		return fmt.Errorf("a terminal of the execution's own cannot be used")
	}
	return nil
}

// networkByMode: IP sockets and the resolver in mode full alone.
func networkByMode(m mac, s subject) error {
	e := s.e
	for _, q := range []eval.Query{
		{Op: "network-outbound", Socket: "ip"}, {Op: "network-inbound", Socket: "ip"}, {Op: "network-bind", Socket: "ip"},
		{Op: "system-socket", Domain: "AF_INET6"}, {Op: "mach-lookup", Name: "com.apple.trustd"},
		{Op: "mach-lookup", Name: "com.apple.SystemConfiguration.configd"},
	} {
		if e.Allows(q) != m.o.NetFull {
			return fmt.Errorf("%+v is allowed: %t, with the network full: %t", q, !m.o.NetFull, m.o.NetFull)
		}
	}
	if !e.Allows(eval.Query{Op: "system-socket", Domain: "AF_UNIX"}) {
		return fmt.Errorf("no AF_UNIX sockets")
	}
	return nil
}
