package jail

import (
	"fmt"
	"slices"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
)

// bounds is what keeps a command off the files of its cgroup, which are the caller's own
// as its rights are.
type bounds struct {
	jailed, landlock bool
	nested           bool // it may make user namespaces
	mounts           []roots.Mount
}

// loose notes a cgroup that the command can change or leave.
func (j *job) loose() {
	b := bounds{jailed: j.bwrap != nil, landlock: j.facts.LandlockABI > 0, nested: j.host.AllowNestedUserns}
	var err error
	if b.mounts, _, err = j.host.mounts.now(); err != nil {
		j.unheld = append(j.unheld, "not known whether the policy makes a cgroup writable: "+err.Error())
	}
	if why := loose(j.plan, b); why != "" {
		j.unheld = append(j.unheld, why)
	}
	if j.group.Swaps() {
		j.unheld = append(j.unheld, "memory that is swapped out is not counted on this machine (no memory.swap.max), so the command can use more than mem_bytes")
	}
}

// loose says why the command can change its cgroup or leave it for another, or "".
func loose(p plan.Plan, b bounds) string {
	const so = "so the command can raise its ceilings, or leave its cgroup"
	switch {
	case !b.jailed && !b.landlock:
		return "without a jail and without Landlock the command can raise its ceilings, or leave its cgroup"
	case b.nested && !b.landlock:
		// cgroup2 can be mounted in any user namespace, and its top is this cgroup.
		return "--allow-nested-userns lets the command mount its cgroup anew, without Landlock, " + so
	}
	for _, op := range p.Ops {
		switch op.Class {
		case plan.Writable, plan.MountRW, plan.ScratchPath:
			if at := b.writable(p, op.Path); at != "" {
				return fmt.Sprintf("the policy makes %q of a cgroup v2 hierarchy writable, %s", at, so)
			}
		}
	}
	return ""
}

// writable gives the part of a cgroup hierarchy that a grant for dir makes writable, or "".
// Any part will do: a process that is written into another cgroup has left its own. What
// is mounted below dir the jail has read-only, unless it was named; Landlock, whose
// grants no later one narrows, does not.
func (b bounds) writable(p plan.Plan, dir string) string {
	on := roots.Mount{}
	for _, m := range b.mounts {
		if host.Beneath(dir, m.Point) && len(m.Point) >= len(on.Point) {
			on = m
		}
	}
	if on.FSType == "cgroup2" {
		return dir
	}
	below := slices.IndexFunc(b.mounts, func(m roots.Mount) bool {
		return m.FSType == "cgroup2" && host.Beneath(m.Point, dir) && (!b.jailed || p.At(m.Point).Effect == plan.ReadWrite)
	})
	if below < 0 {
		return ""
	}
	return b.mounts[below].Point
}
