package cgroup

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"sandboxd/protocol"
)

// LowerTo takes away what only stage 2 needed and leaves what stays beside the command:
// [Scaffold], or nothing without bubblewrap. Call it when the command has been executed
// (fd 4 has ended). A ceiling below the present number of tasks kills nothing; it stops
// forks. An [*ExceededError] means that the command was quicker: it used the share that
// was stage 2's, and has more tasks than the policy's pids.
func (g *Group) LowerTo(scaffold uint64) error {
	if g.limits.Pids == 0 || g.allowance.Load() <= scaffold {
		return nil
	}
	for _, w := range Writes(protocol.Limits{Pids: g.limits.Pids}, scaffold) {
		if err := g.dir.write(w.Name, w.Data); err != nil {
			return fmt.Errorf("cannot lower %s: %w", w.Name, err)
		}
	}
	g.allowance.Store(scaffold)
	return g.exceeded(scaffold)
}

// ExceededError is a command that had more tasks than its ceiling when that was
// lowered to it.
type ExceededError struct{ Tasks, Pids uint64 }

func (e *ExceededError) Error() string {
	return fmt.Sprintf("the command had %d tasks where pids allows %d, before the share for its start was taken off pids.max", e.Tasks, e.Pids)
}

// exceededLooks is how often the tasks are counted before that counts: a fork that is
// just being denied is in pids.current for a moment (pids_try_charge in the kernel),
// and the list is not read in one step.
const exceededLooks = 3

func (g *Group) exceeded(scaffold uint64) error {
	least := uint64(math.MaxUint64)
	for range exceededLooks {
		n, err := g.tasks()
		if err != nil {
			return fmt.Errorf("cannot count the tasks under pids.max: %w", err)
		}
		least = min(least, n)
		if least <= g.limits.Pids+scaffold {
			return nil
		}
	}
	return &ExceededError{Tasks: least - scaffold, Pids: g.limits.Pids}
}

// tasks is the smaller of the counter and of the list, each of which may be ahead of
// the other.
func (g *Group) tasks() (uint64, error) {
	text, err := g.dir.read("pids.current")
	if err != nil {
		return 0, err
	}
	current, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, err
	}
	listed, err := g.dir.fields("cgroup.threads")
	return min(current, uint64(len(listed))), err
}
