package roots

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// What bubblewrap makes to mount on where nothing is, whatever the umask.
const (
	standInDir  = unix.S_IFDIR | 0o755
	standInFile = unix.S_IFREG | 0o444
)

// tick is by how much a time on a file can lag behind the clock, at most.
const tick = 10 * time.Millisecond

// RemoveStandIn removes what bubblewrap made at a path between two moments, because the
// host had taken away what it was to mount on. It is known by its mode, by being empty,
// and by not having changed after it was made. Call it only when the jail's init has
// ended.
func RemoveStandIn(path string, r *Reached, since, until time.Time) error {
	if r.again() != nil {
		return nil
	}
	parent, err := r.Dup(host.Parent(path))
	if err != nil {
		return nil // that went too
	}
	defer parent.Close()
	var st unix.Stat_t
	if unix.Fstatat(int(parent.Fd()), base(path), &st, unix.AT_SYMLINK_NOFOLLOW) != nil || !standIn(&st, since, until) {
		return nil
	}
	op := plan.Op{Path: path, Class: plan.MaskFile}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		op.Class = plan.MaskDir
	}
	p := &placeholder{op: op, parent: parent, name: base(path), fd: noFD, pin: noFD, own: true}
	if p.fd, err = openat(int(parent.Fd()), p.name, p.openFlags()); err != nil {
		return nil
	}
	defer closeFD(p.fd)
	// By descriptor, since the look for mounts takes a while: what the host puts there
	// meanwhile is not this inode.
	if errors.Is(flock(p.fd, unix.LOCK_EX), unix.EWOULDBLOCK) || unix.Fstat(p.fd, &st) != nil || !standIn(&st, since, until) {
		return nil
	}
	p.id = host.ID{Dev: uint64(st.Dev), Ino: st.Ino}
	if mountsOn([]*placeholder{p})[p] { // another execution's by now
		return nil
	}
	if unix.Fstat(p.fd, &st) != nil || !standIn(&st, since, until) {
		return nil
	}
	return p.remove() // a directory only if it is empty
}

func standIn(st *unix.Stat_t, since, until time.Time) bool {
	made := time.Unix(st.Ctim.Unix())
	if int(st.Uid) != os.Geteuid() || st.Ctim != st.Mtim || made.Before(since.Add(-tick)) || made.After(until) {
		return false
	}
	return st.Mode&^unix.S_ISGID == standInDir || st.Mode == standInFile && st.Size == 0 && st.Nlink == 1
}
