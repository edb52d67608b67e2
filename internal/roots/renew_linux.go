package roots

import (
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

// Renew gives what a [Survey] of the same paths would give now, by one look at each name
// that this one met, or nil where it might give anything else. The caller knows that the
// mount table is the same, and passes the same w. The paths are physical: each name on the
// way is compared as well, so a link that was put in the way of one shows itself. Nothing
// is held: what is asked of the result is reached anew and compared by device and inode.
// A file system that hangs holds it up as it does a survey.
func (r *Reached) Renew(w Writability) *Reached {
	if r.basis.more || w.Memory.now() != r.basis.memory || !r.samePrivate(w.Private) {
		return nil
	}
	for path, was := range r.layout {
		if !r.still(path, was) {
			return nil
		}
	}
	return r.Note()
}

// Note gives a copy that holds nothing and that nobody else writes to. What is asked of it
// is reached anew.
func (r *Reached) Note() *Reached {
	note, judged := *r, *r.places
	note.dirs, note.kept, note.order, note.budget = map[string]int{}, map[string]int{}, nil, descriptorBudget()
	note.basis.renewed, note.basis.mountIDs = true, maps.Clone(r.basis.mountIDs)
	note.places, judged.r, judged.seen = &judged, &note, nil
	return &note
}

// still says whether a survey would see the same node at a path.
func (r *Reached) still(path string, was host.Node) bool {
	var st unix.Stat_t
	_, err := retry(func() (int, error) { return 0, unix.Lstat(path, &st) })
	switch {
	case was.Kind == host.Missing:
		return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENAMETOOLONG)
	case was.Kind == host.Denied:
		return errors.Is(err, unix.EACCES)
	case err != nil:
		return false
	}
	now := nodeFrom(&st)
	now.Target, now.Placeholder, now.Respelled = was.Target, was.Placeholder, was.Respelled
	if was.Kind == host.Dir { // what it holds is looked at by name
		now.Nlink = was.Nlink
	}
	if stamp, noted := r.basis.stamps[path]; now != was || noted && stamp != ctime(&st) {
		return false
	}
	if id, noted := r.basis.mountIDs[path]; noted && mountOf(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW) != id {
		return false
	}
	return was.Kind != host.Link || linksTo(path, was.Target)
}

func linksTo(path, target string) bool {
	buf := make([]byte, len(target)+1)
	n, err := unix.Readlink(path, buf)
	return err == nil && string(buf[:n]) == target
}

// samePrivate says whether the same is root's alone.
func (r *Reached) samePrivate(p *Private) bool {
	if p == nil || r.uid != 0 {
		return true
	}
	found, all, err := p.Below(settings)
	return err == nil && all == !r.more && slices.Equal(found, r.basis.private)
}

// stamp notes when something changed last, before more is asked of it than its node. What
// changed just now can change once more without showing it.
func (r *Reached) stamp(path string) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil || nodeFrom(&st).ID != r.layout[path].ID || !aged(time.Unix(st.Ctim.Unix()), time.Now()) {
		r.basis.more = true
		return
	}
	r.basis.stamps[path] = ctime(&st)
}

// aged says whether another change would show as another time. A file system with times
// of whole seconds, or of two (FAT), takes that long.
func aged(changed, now time.Time) bool {
	grain := 2 * tick
	if changed.Nanosecond() == 0 {
		grain = 3 * time.Second
	}
	return now.Sub(changed).Abs() >= grain
}

func ctime(st *unix.Stat_t) int64 { return st.Ctim.Nano() }

// now is the version of what the memory holds.
func (m *Memory) now() uint64 {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}
