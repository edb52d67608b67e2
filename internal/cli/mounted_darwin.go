package cli

import "golang.org/x/sys/unix"

// mountedReadOnly says whether path is on a file system that is mounted read-only.
func mountedReadOnly(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.MNT_RDONLY != 0
}
