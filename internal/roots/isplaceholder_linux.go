package roots

import "golang.org/x/sys/unix"

// IsPlaceholder says whether a placeholder of this user stands at path, in use or left
// by a helper that was killed: whoever looks at the host then sees nothing there.
func IsPlaceholder(path string) bool {
	fd, err := retry(func() (int, error) { return unix.Open(path, walkFlags, 0) })
	if err != nil {
		return false
	}
	defer closeFD(fd)
	node, err := nodeOf(fd)
	return err == nil && leftover(fd, node)
}
