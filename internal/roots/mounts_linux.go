package roots

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func ownMounts() ([]Mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cannot read the mount table: %w", err)
	}
	return ParseMountinfo(data)
}

// mountID gives the id of the mount that a directory of the survey lies on, 0
// where the kernel (before 5.8) does not tell.
func (r *Reached) mountID(dir string) uint64 {
	if id, known := r.basis.mountIDs[dir]; known {
		return id
	}
	fd, err := r.dirFD(dir)
	if err != nil {
		r.basis.more = true
		return 0
	}
	id := mountOf(fd, "", unix.AT_EMPTY_PATH)
	r.basis.mountIDs[dir] = id
	return id
}

// mountOf gives the id of the mount of what is at a path, 0 where it is not told.
func mountOf(dir int, path string, flags int) uint64 {
	var st unix.Statx_t
	err := unix.Statx(dir, path, flags, unix.STATX_MNT_ID, &st)
	if err != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return 0
	}
	return st.Mnt_id
}

// mayWrite says whether this caller, and so a command of it, could make an entry
// in a directory, now or after a chmod of its own.
func (r *Reached) mayWrite(dir string) bool {
	if int(r.layout[dir].UID) == r.uid {
		return true
	}
	r.basis.more = true
	fd, err := r.dirFD(dir)
	if err != nil {
		return true
	}
	return unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.W_OK, unix.AT_EACCESS) == nil
}
