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
	fd, err := r.dirFD(dir)
	if err != nil {
		return 0
	}
	var st unix.Statx_t
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st)
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
	fd, err := r.dirFD(dir)
	if err != nil {
		return true
	}
	return unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.W_OK, unix.AT_EACCESS) == nil
}
