package selftest

import (
	"slices"

	"sandboxd/protocol"
)

// The layers that enforce a kind of rule, any one of them.
var (
	byView    = []string{protocol.TagMounts, protocol.TagLandlock, protocol.TagSeatbeltFs}
	byMask    = []string{protocol.TagMounts, protocol.TagSeatbeltFs}
	byJail    = []string{protocol.TagBwrap, protocol.TagSeatbelt}
	bySockets = []string{protocol.TagSeccompNet, protocol.TagSeatbeltNet}
	byNetwork = []string{protocol.TagBwrap, protocol.TagSeccompNet, protocol.TagLandlockNet, protocol.TagSeatbeltNet}
	byPath    = []string{protocol.TagMounts, protocol.TagLandlockUnix, protocol.TagSeatbeltFs}
)

// Probes is the table, in the order of the lines. testdata/enforcement names each.
func Probes(goos string) []Probe {
	all := slices.Concat(fileProbes(), viewProbes(), networkProbes(), processProbes(), limitProbes(), hostileProbes())
	return slices.DeleteFunc(all, func(p Probe) bool { return p.Linux && goos != "linux" })
}

// withRO and the like change the strict policy.
func withRO(s *site, paths ...string) protocol.Policy {
	p := s.policy()
	for _, rel := range paths {
		p.ReadableRoots = append(p.ReadableRoots, s.path(rel))
	}
	return p
}

func withRW(s *site, paths ...string) protocol.Policy {
	p := s.policy()
	for _, rel := range paths {
		p.WritableRoots = append(p.WritableRoots, s.path(rel))
	}
	return p
}

func protecting(s *site, paths ...string) protocol.Policy {
	p := s.policy()
	for _, rel := range paths {
		p.Protected = append(p.Protected, s.path(rel))
	}
	return p
}

func strict(s *site) protocol.Policy { return s.policy() }
