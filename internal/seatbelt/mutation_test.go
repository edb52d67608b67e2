package seatbelt

import (
	"slices"
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/protocol"
)

// hard is a policy that needs every kind of rule.
func hard(t testing.TB) mac {
	return newMac(t, protocol.Policy{
		WritableRoots: []string{ws, "/Users/u/tree"}, ReadableRoots: []string{"/Users/u", ws + "/vendor"},
		Protected: []string{ws + "/.git/hooks", ws + "/.env", "/Users/u/.ssh", ws + "/new/.git/hooks", ws + "/secrets/lib"},
		Mounts:    []protocol.Mount{{Path: "/Users/u/cache", Access: protocol.ReadWrite}},
	}, nil)
}

func TestProperties(t *testing.T) {
	for _, g := range append([]golden{{name: "hard", p: hard(t).p}}, goldens...) {
		m := newMac(t, g.p, g.edit)
		for _, p := range properties {
			t.Run(g.name+"/"+p.name, func(t *testing.T) {
				if err := p.of(m, build(m.plan, m.o)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// Each mutation of the list of rules must be caught by the property that is named,
// or the property proves nothing.
func TestMutations(t *testing.T) {
	pin := func(r rule) bool { return !r.allow && slices.Equal(r.ops, moveOps) }
	guards := func(rules []rule) int { return slices.IndexFunc(rules, func(r rule) bool { return r.guard }) }
	for _, c := range []struct {
		name, caught string
		mutate       func([]rule) []rule
	}{
		{"a grant after the denies", "protected denies are last", func(rules []rule) []rule {
			return append(rules, allow(allOps, region(ws, host.Dir)))
		}},
		{"a grant after the denies, by its effect", "protected paths are out of reach", func(rules []rule) []rule {
			return append(rules, allow(allOps, region(ws, host.Dir)))
		}},
		{"the denies before the grants", "protected paths are out of reach", func(rules []rule) []rule {
			i := guards(rules)
			return append(slices.Clone(rules[i:]), rules[:i]...)
		}},
		{"an unresolved spelling", "no unresolved path is granted", func(rules []rule) []rule {
			i := guards(rules)
			return slices.Insert(rules, i, allow(readOps, region("/tmp/mine", host.Dir)))
		}},
		{"the spelling of a policy, not of the kernel", "no unresolved path is granted", func(rules []rule) []rule {
			return slices.Insert(rules, guards(rules), allow(readOps, region("/Users/u/WS", host.Dir)))
		}},
		{"the name of the data volume", "no unresolved path is granted", func(rules []rule) []rule {
			return slices.Insert(rules, guards(rules), allow(readOps, region(dataVolume+"/Users/u", host.Dir)))
		}},
		{"the data volume's names are not denied", "protected paths are out of reach", func(rules []rule) []rule {
			rules = slices.Insert(rules, guards(rules), allow(allOps, region(dataVolume, host.Dir)))
			return slices.DeleteFunc(rules, func(r rule) bool { return r.guard && strings.HasPrefix(r.filters[0].value, dataVolume) })
		}},
		{"a path spliced into the text", "paths are parameters", func(rules []rule) []rule {
			return slices.Insert(rules, guards(rules), rule{allow: true, ops: readOps, filters: []filter{{raw: `(subpath "` + ws + `")`}}})
		}},
		{"/dev as a tree", "devices by name", func(rules []rule) []rule {
			return slices.Insert(rules, guards(rules), allow(deviceOps, region("/dev", host.Dir)))
		}},
		{"the pattern of terminals without the extension", "devices by name", func(rules []rule) []rule {
			return slices.Insert(rules, guards(rules), rule{allow: true, ops: deviceOps, filters: []filter{{raw: `(regex #"^/dev/ttys[0-9]+$")`}}})
		}},
		{"no ancestor rule", "ancestors cannot be renamed", func(rules []rule) []rule {
			return slices.DeleteFunc(rules, pin)
		}},
		{"one ancestor less", "ancestors cannot be renamed", func(rules []rule) []rule {
			i := slices.IndexFunc(rules, pin)
			rules[i].filters = slices.DeleteFunc(slices.Clone(rules[i].filters), func(f filter) bool { return f.value == ws+"/.git" })
			return rules
		}},
		{"only the literal is denied", "protected paths are out of reach", func(rules []rule) []rule {
			for i, r := range rules {
				if r.guard {
					rules[i].filters = slices.DeleteFunc(slices.Clone(r.filters), func(f filter) bool { return f.kind == "subpath" })
				}
			}
			return slices.DeleteFunc(rules, func(r rule) bool { return r.guard && len(r.filters) == 0 })
		}},
		{"reading is not denied", "protected paths are out of reach", func(rules []rule) []rule {
			for i, r := range rules {
				if r.guard && slices.Equal(r.ops, allOps) {
					rules[i].ops = writeOps
				}
			}
			return rules
		}},
		{"letter case matters", "protected paths are out of reach", func(rules []rule) []rule {
			return slices.DeleteFunc(rules, func(r rule) bool { return r.guard && r.filters[0].kind == "regex" })
		}},
		{"the network is open", "network by mode", func(rules []rule) []rule {
			return append(network(true), rules...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := hard(t)
			i := slices.IndexFunc(properties, func(p property) bool { return p.name == c.caught })
			if err := properties[i].of(m, build(m.plan, m.o)); err != nil {
				t.Fatalf("before the mutation: %v", err)
			}
			if err := properties[i].of(m, c.mutate(build(m.plan, m.o))); err == nil {
				t.Errorf("%q does not notice it", c.caught)
			}
		})
	}
}
