//go:build linux || darwin

package jail

import (
	"fmt"
	"slices"
	"time"

	"sandboxd/internal/fence/repos"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

// maxGuarded bounds the writable roots whose repositories are looked at: what a command
// writes there costs the helper memory, for each of them.
const maxGuarded = 8

// guard is the state of the repositories that a policy guards, before its command. A
// policy that guards none asks for nothing, and is told nothing.
type guard struct {
	states []repos.State
	beyond []string // roots that are guarded too, and not looked at
}

// lookAtGuarded takes the state. Only the roots themselves and what their indexes name
// are looked at: searching a tree takes longer than most commands.
func lookAtGuarded(p protocol.Policy) (g guard) {
	kept := slices.Clone(p.Protected)
	for _, m := range p.Mounts {
		if m.Access == protocol.ReadOnly {
			kept = append(kept, m.Path)
		}
	}
	seen := map[string]bool{}
	for _, root := range p.WritableRoots {
		if seen[root] || !repos.Asked(root, kept) {
			continue
		}
		seen[root] = true
		if len(g.states) < maxGuarded {
			state := repos.Look(root, 0)
			state.Kept(p.WritableRoots, slices.Concat(kept, p.ReadableRoots))
			g.states = append(g.states, state)
		} else {
			g.beyond = append(g.beyond, root)
		}
	}
	return g
}

// changedBound is how long the look afterwards may take. A command can have it led to a
// file system that hangs, by a .git file.
const changedBound = KillBound

// changed says what no mount could keep the command from. Its processes are gone.
func (g guard) changed() []plan.Skip {
	if len(g.states) == 0 {
		return nil
	}
	found := make(chan []plan.Skip, 1)
	go func() { found <- g.look() }()
	late := time.NewTimer(changedBound)
	defer late.Stop()
	select {
	case out := <-found:
		return out
	case <-late.C:
		return []plan.Skip{{Tag: protocol.TagGuard, Reason: fmt.Sprintf("what the command did to the repositories is not known: looking at them did not end within %v; look at them before you use git there", changedBound)}}
	}
}

func (g guard) look() (out []plan.Skip) {
	for _, before := range g.states {
		for _, text := range repos.Changes(before, before.Again()) {
			out = append(out, plan.Skip{Tag: protocol.TagGuard, Reason: text})
		}
	}
	if n := len(g.beyond); n > 0 {
		more := ""
		if n > 1 {
			more = fmt.Sprintf(" and %d more of the kind", n-1)
		}
		out = append(out, plan.Skip{Tag: protocol.TagGuard, Reason: fmt.Sprintf("what the command did to the repositories in %q%s is not known: only %d guarded roots are looked at; look at them before you use git there", g.beyond[0], more, maxGuarded)})
	}
	return out
}
