package roots

import (
	"errors"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

// searchDir opens a directory to walk on without reading it: O_SEARCH of
// <sys/fcntl.h>, which is O_EXEC|O_DIRECTORY (macOS 12 and later).
const searchDir = 0x40000000 | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func openRoot() (int, host.Node, error) {
	fd, err := unix.Open("/", searchDir, 0)
	if err != nil {
		return noFD, host.Node{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		closeFD(fd)
		return noFD, host.Node{}, err
	}
	return fd, nodeOf(&st), nil
}

// open looks at name in the directory parent. Only directories are held open: a
// Seatbelt profile names paths, so nothing else needs a descriptor.
func open(parent int, name string) (object, error) {
	var st unix.Stat_t
	err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return object{fd: noFD, node: host.Node{Kind: host.Missing}}, nil
	case errors.Is(err, unix.EACCES):
		return object{fd: noFD, node: host.Node{Kind: host.Denied}}, nil
	case err != nil:
		return object{fd: noFD}, err
	}
	o := object{fd: noFD, node: nodeOf(&st)}
	if o.node.Kind == host.Dir {
		return openDir(parent, name, o)
	}
	disk, err := nameOnDisk(parent, name)
	if err != nil {
		return o, err
	}
	if node, ok := respelledName(name, disk, o.node); ok {
		return object{fd: noFD, node: node}, nil
	}
	if o.node.Kind == host.Link {
		buf := make([]byte, 4096)
		n, err := unix.Readlinkat(parent, name, buf)
		if err != nil {
			return o, err
		}
		o.node.Target = string(buf[:n])
	}
	return o, nil
}

// openDir holds the directory that was just seen, and insists that it is that one.
func openDir(parent int, name string, o object) (object, error) {
	fd, err := unix.Openat(parent, name, searchDir, 0)
	if errors.Is(err, unix.EACCES) {
		return o, nil // it exists, and what is below is found to be closed
	}
	if err != nil {
		return o, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		closeFD(fd)
		return o, err
	}
	if node := nodeOf(&st); node.ID != o.node.ID {
		closeFD(fd)
		return o, ErrMoved
	}
	above, err := pathOfFD(parent)
	if err == nil {
		var here string
		if here, err = pathOfFD(fd); err == nil {
			if node, ok := respelledDir(above, name, here); ok {
				closeFD(fd)
				return object{fd: noFD, node: node}, nil
			}
		}
	}
	if err != nil {
		closeFD(fd)
		return o, err
	}
	o.fd = fd
	return o, nil
}

func nodeOf(st *unix.Stat_t) host.Node {
	return host.Node{
		Kind:  kindOf(uint32(st.Mode)),
		ID:    host.ID{Dev: uint64(uint32(st.Dev)), Ino: st.Ino},
		Nlink: uint64(st.Nlink),
		Rdev:  uint64(uint32(st.Rdev)),
		Mode:  uint32(st.Mode) & 0o7777,
		UID:   st.Uid, GID: st.Gid,
	}
}

// descriptorBudget is how many descriptors one survey may keep; macOS starts
// programs with a soft limit of 256.
func descriptorBudget() int {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil || lim.Cur <= 1024 {
		return 64
	}
	return int(min(lim.Cur/4, 4096))
}

func dupFD(fd int) (int, error) {
	if fd == noFD {
		return noFD, errors.ErrUnsupported
	}
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
}
