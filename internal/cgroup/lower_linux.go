package cgroup

import (
	"fmt"

	"sandboxd/protocol"
)

// Lower takes away what only stage 2 needed and leaves bubblewrap's share: call it when
// stage 2 starts no thread any more, before the command is executed. A ceiling below the
// present number of tasks kills nothing; it stops forks.
func (g *Group) Lower() error { return g.LowerTo(Scaffold) }

// LowerTo is Lower for a start without bubblewrap, beside which nothing stays.
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
	return nil
}
