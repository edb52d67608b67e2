package cli

import "golang.org/x/sys/unix"

// mountedReadOnly says whether path is on a mount or file system that is read-only.
func mountedReadOnly(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}
