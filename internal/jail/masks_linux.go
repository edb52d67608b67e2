package jail

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sandboxd/internal/plan"
	"sandboxd/internal/roots"
)

// masks follows what the host does to the names under the jail's mount points.
// A mount follows the inode: when the host replaces a masked name by rename, the
// kernel detaches the mask, and the jail sees the new file.
type masks struct {
	watch   *roots.Watch
	err     error
	opening map[string]bool // a loss gives the command more, and stops it
	narrow  map[string]bool // of these: what was read-only
	report  bool            // --on-mask-loss report
	over    bool            // the namespace had ended already
}

// watched lists the mount points whose loss matters: nothing of the host lies
// under the others. opening are those, and what else is protected, by whose loss the
// command gets more than the policy says: a secret, a service's socket, or the right to
// write what is read-only, as the guard's settings are.
func watched(p plan.Plan) (points []string, opening, narrow map[string]bool) {
	opening, narrow = map[string]bool{}, p.Narrowed()
	for _, q := range p.Asked { // also what needs no mask: the host can mount it into the view
		if q.Origin.List == "protected" {
			opening[q.Path] = true
		}
	}
	for _, path := range p.Later {
		opening[path] = true
	}
	for _, op := range p.Ops {
		switch op.Class {
		case plan.MaskDir, plan.MaskFile:
			opening[op.Path] = op.Origin.List != "kernel" // its mask goes when the host unmounts it
		case plan.MountRO, plan.Readable:
			opening[op.Path] = opening[op.Path] || narrow[op.Path]
		case plan.Pin: // by itself it shows nothing: what it holds in place is watched too
		default:
			continue
		}
		points = append(points, op.Path)
	}
	return points, opening, narrow
}

var errNoInit = errors.New("the jail's init could not be found, so its mounts were not watched")

// openMasks opens the jail's mount table, which keeps it in being, before the command
// runs: one that ends at once is judged too.
func (s *supervision) openMasks() {
	if s.p.table < 0 && s.p.init != 0 {
		s.p.table, s.p.tableErr = roots.OpenMounts(s.p.init)
	}
}

// watchMasks starts the watch once the command has been let go: what reads the table
// is not to delay it.
func (s *supervision) watchMasks(p plan.Plan) {
	table := s.p.table
	s.p.table = -1
	points, opening, narrow := watched(p)
	if len(points)+len(opening) == 0 || !s.p.jailed {
		if table >= 0 {
			unix.Close(table)
		}
		return
	}
	s.masks = &masks{opening: opening, narrow: narrow, report: s.host.OnMaskLoss == MaskLossReport, err: s.p.tableErr}
	if s.p.init == 0 { // it has ended, or this kernel opens no process
		s.masks.err, s.masks.over = errNoInit, s.p.payloadFD >= 0 && exited(s.p.payloadFD)
		return
	}
	if table >= 0 {
		s.masks.watch, s.masks.err = roots.StartWatch(table, points, newPlanned(p, s.reached), func(lost []roots.Loss) {
			for _, l := range lost {
				if opening[l.Path] && !s.masks.report {
					s.run.Stop(MaskLost)
				}
			}
		})
	}
	// EINVAL: init has left its mount namespace, a moment before its pidfd says so.
	s.masks.over = s.masks.err != nil && (exited(s.p.initFD) || errors.Is(s.masks.err, unix.EINVAL))
}

// lostMasks ends the watch and says what was lost.
func (s *supervision) lostMasks() []plan.Skip {
	if s.masks == nil {
		return nil
	}
	if s.masks.err != nil && s.masks.over {
		return nil // it had ended before the watch could begin: nothing could be seen
	}
	if s.masks.err != nil {
		return []plan.Skip{{Tag: "mounts", Reason: s.masks.err.Error() + "; a mask that the host replaced during the run would not have been noticed"}}
	}
	lost, err := s.masks.watch.Stop()
	var out []plan.Skip
	for _, l := range lost {
		reason := fmt.Sprintf("%q %s", l.Path, l.How)
		if s.masks.narrow[l.Path] {
			reason += ", and what came there could be written"
		}
		if s.stopped == MaskLost && s.masks.opening[l.Path] {
			reason += "; stopped"
		}
		out = append(out, plan.Skip{Tag: "mounts", Reason: reason})
	}
	if err != nil {
		out = append(out, plan.Skip{Tag: "mounts", Reason: err.Error()})
	}
	return out
}
