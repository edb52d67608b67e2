package jail

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/roots"
)

// stamp tells what is at a path from what comes there later, and from itself where it
// went and came back: renaming changes an inode's ctime and leaves its mtime (inode(7)).
// Where both changed, something was written, or made in a directory.
type stamp struct {
	id              host.ID // zero: nothing of the host is mounted there, or mounted on
	changed, filled unix.Timespec
}

func stampOf(path string) (stamp, bool) {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return stamp{}, false
	}
	return stamp{host.ID{Dev: uint64(st.Dev), Ino: st.Ino}, st.Ctim, st.Mtim}, true
}

// look stamps what the plan binds and masks, and the placeholders.
func (j *job) look() []stamp {
	j.looked = time.Now()
	all := make([]stamp, len(j.plan.Ops))
	for i, op := range j.plan.Ops {
		id := op.Node.ID
		if op.Placeholder {
			id, _ = j.places.ID(op.Path)
		}
		if id == (host.ID{}) {
			continue
		}
		all[i], _ = stampOf(op.Path)
		all[i].id = id
	}
	return all
}

// sweepStandIns removes what bubblewrap made where the host took a mount point away: in
// a directory that the command may write, which it is of the host.
func (j *job) sweepStandIns() error {
	if j.bwrap == nil || j.looked.IsZero() {
		return nil
	}
	if j.built.IsZero() {
		j.built = time.Now()
	}
	var errs []error
	for i, was := range j.stamps {
		op := j.plan.Ops[i]
		if was.id == (host.ID{}) || op.Node.Kind == host.Dir && !op.Placeholder {
			continue // an empty directory in another one's place may well be the host's
		}
		path := op.Path
		if _, writable := j.plan.Access(host.Parent(path)); !writable {
			continue
		}
		// What nothing held open may have given its number to the stand-in.
		if now, ok := stampOf(path); ok && (now.id != was.id || now.changed != was.changed) {
			errs = append(errs, roots.RemoveStandIn(path, j.reached, j.looked, j.built))
		}
	}
	return errors.Join(errs...)
}

// moved says whether the host mounted or unmounted something since the job looked, or
// replaced, removed or moved what it binds or masks.
func (j *job) moved() bool {
	if j.host.mounts.current() != j.mounts {
		return true
	}
	for i, was := range j.stamps {
		if was.id == (host.ID{}) {
			continue
		}
		now, ok := stampOf(j.plan.Ops[i].Path)
		if !ok || now.id != was.id || now.changed != was.changed && now.filled == was.filled {
			return true
		}
	}
	return false
}

// moved asks the same for as long as that can matter: a file system that hangs answers
// never, and a jail that failed because of it is not built anew.
func (r *Run) moved(j *job) bool {
	answer := make(chan bool, 1)
	go func() { answer <- j.moved() }()
	late := time.NewTimer(KillBound)
	defer late.Stop()
	select {
	case moved := <-answer:
		return moved
	case <-r.stop:
	case <-late.C:
	}
	return false
}
