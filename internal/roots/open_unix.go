//go:build linux || darwin

package roots

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

func kindOf(mode uint32) host.Kind {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return host.Dir
	case unix.S_IFREG:
		return host.File
	case unix.S_IFLNK:
		return host.Link
	case unix.S_IFSOCK:
		return host.Socket
	case unix.S_IFIFO:
		return host.Fifo
	case unix.S_IFCHR:
		return host.CharDevice
	case unix.S_IFBLK:
		return host.BlockDevice
	}
	return host.Unknown
}

func closeFD(fd int) {
	if fd != noFD {
		unix.Close(fd)
	}
}
