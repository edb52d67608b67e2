package cgroup

import (
	"errors"
	"fmt"
)

// Events reads how many processes were killed for lack of memory (oom_kill of
// memory.events) and how many forks were denied (max of pids.events). A ceiling that
// was not asked for counts nothing; the counter of one that was, and cannot be read,
// is an error. Read it before Remove.
func (g *Group) Events() (oomKill, pidsDenied uint64, err error) {
	var errs [2]error
	if g.limits.MemBytes != 0 {
		oomKill, errs[0] = g.count("memory.events", "oom_kill")
	}
	if g.limits.Pids != 0 {
		pidsDenied, errs[1] = g.count("pids.events", "max")
	}
	return oomKill, pidsDenied, errors.Join(errs[:]...)
}

func (g *Group) count(file, key string) (uint64, error) {
	text, err := g.dir.read(file)
	if err != nil {
		return 0, fmt.Errorf("cannot read what the ceiling did: %w", err)
	}
	n, ok := counter(text, key)
	if !ok {
		return 0, fmt.Errorf("cannot read what the ceiling did: %s/%s names no %s", g.dir.path, file, key)
	}
	return n, nil
}
