package report

import (
	"sandboxd/internal/plan"
	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

// Outcome is what is known after an execution, from which the entries are made.
type Outcome struct {
	Policy       protocol.Policy
	Platform     string       // GOOS
	Jailed       bool         // bubblewrap (macOS: sandbox-exec) was used
	NoJail       string       // why not
	Root         bool         // the caller is uid 0
	NestedUserns bool         // --allow-nested-userns
	Checks       []spec.Check // what stage 2 was asked to verify (Spec.Checks)
	NoCaps       bool         // the same (Spec.NoCaps)
	NoUserns     bool         // the same (Spec.NoUserns)
	Mounts       uint64       // how many mount points it was asked to find (Spec.View)
	Report       *spec.Report // nil: stage 2 said nothing
	Audit        plan.Audit
	Cgroup       Cgroup
	Extra        []plan.Skip // found while it ran: lost masks, litter, ...
}

// Cgroup is what the cgroup layer did.
type Cgroup struct {
	Applied    bool
	Allowance  uint64 // pids allowance of the scaffolding, 0: none
	Reason     string // why not Applied
	OOMKill    uint64 // processes killed for memory (memory.events, oom_kill)
	PidsDenied uint64 // forks denied (pids.events, max)
}
