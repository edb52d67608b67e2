//go:build unix

package repos

import "syscall"

// readFlags open a file that a command may have replaced: no link is followed, and
// a fifo does not block.
const readFlags = syscall.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// dirFlags open a directory and nothing else: a fifo in its place does not block.
const dirFlags = syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK
