package roots

import (
	"fmt"

	"sandboxd/internal/host"
)

// record is what was planned of a jail's mounts, to be compared with the table as it is
// later. A number alone says nothing: mnt_id is the lowest free one, and so that of a
// mount which the host has just taken away (proc_pid_mountinfo(5)).
type record struct {
	judge Judge
	own   map[string]Mount // at each watched point the jail's own mount, which lies on top; or none
	known map[uint64]Mount // every mount that was planned, as it was
}

// newRecord sorts the mounts that stand when a watch begins.
func newRecord(mounts []Mount, points []string, judge Judge) record {
	r := record{judge, make(map[string]Mount, len(points)), make(map[uint64]Mount, len(mounts))}
	for _, point := range points {
		r.own[point] = Mount{}
	}
	now := table(mounts)
	at := make(map[string]int, len(mounts))
	for _, m := range mounts {
		at[m.Point]++
	}
	for _, m := range mounts {
		if judge == nil || judge.Expected(m, at[m.Point]) {
			r.known[m.ID] = m
		}
		was, watched := r.own[m.Point]
		if !watched || now.inside(was, m) {
			continue
		}
		mine, fixed := true, m.ReadOnly
		if judge != nil {
			mine, fixed = judge.Own(m, at[m.Point])
		}
		if mine {
			m.ReadOnly = m.ReadOnly && fixed
			r.own[m.Point] = m
		}
	}
	return r
}

// lost says what of the plan a table lacks, and what the host's mounts in it take away.
func (r record) lost(mounts []Mount, lose func(Loss), already func(point string) bool) {
	now := table(mounts)
	for _, m := range mounts {
		if r.judge == nil {
			break
		}
		was, ok := r.known[m.ID]
		ok = ok && was.at(m)
		// A rename on the host changes the root of a bind, and the end of a mount of the
		// host's the parent of what lay on it: each asks for half of the question only.
		if !ok || was.Root != m.Root {
			for _, l := range r.judge.Lost(m) {
				lose(l)
			}
		}
		if ok && was.Parent == m.Parent {
			continue
		}
		for point, own := range r.own {
			if host.Beneath(point, m.Point) && !now.inside(now[own.ID], m) {
				lose(Loss{point, fmt.Sprintf("was covered by a mount that the host made at %q during the run", m.Point)})
			}
		}
	}
	for point, own := range r.own {
		m, there := now[own.ID]
		if there && own.at(m) && (m.ReadOnly || !own.ReadOnly) {
			continue
		}
		if r.judge == nil || already(point) || !r.judge.Bare(point) {
			lose(Loss{point, replaced})
		}
	}
}

// at says whether a mount with the number of m is on the same file system and at the
// same point.
func (m Mount) at(o Mount) bool { return m.Dev == o.Dev && m.FSType == o.FSType && m.Point == o.Point }

// mountTable is a mount table by number.
type mountTable map[uint64]Mount

func table(mounts []Mount) mountTable {
	t := make(mountTable, len(mounts))
	for _, m := range mounts {
		t[m.ID] = m
	}
	return t
}

// inside says whether m lies, through whatever others, on o, or is it. What is mounted
// where something lies already goes beneath that, or, where it shows the very directory
// that a bind shows, on top of it.
func (t mountTable) inside(m, o Mount) bool {
	for range len(t) {
		if m.ID == o.ID {
			return true
		}
		up, ok := t[m.Parent]
		if !ok {
			return false
		}
		m = up
	}
	return false
}
