package server

import "sandboxd/internal/host/probe"

// ProbeRole is the argument under which a helper starts itself to look at bubblewrap.
const ProbeRole = probe.Role

// Probe is that role. It gives the exit status.
func Probe(args []string) int { return probe.Main(args) }
