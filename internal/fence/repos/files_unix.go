//go:build unix

package repos

import (
	"os"
	"syscall"
)

// readFlags open a file that a command may have replaced: it is no link itself, though
// its directory may be reached through one, as git would, and a fifo does not block.
const readFlags = syscall.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// dirFlags open a directory and nothing else: a fifo in its place does not block. A link
// is followed, as git follows one in place of ".git/worktrees".
const dirFlags = syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK

// Owned says whether this user can change a place's mode.
func Owned(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid()
}
