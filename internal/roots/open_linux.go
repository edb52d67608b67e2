package roots

import (
	"errors"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

// walkFlags open a name as it stands: O_PATH needs no permission on the object
// and has no side effect on devices and fifos; see open(2).
const walkFlags = unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC

// stNoSymFollow is ST_NOSYMFOLLOW of statfs(2), Linux 5.10 and later.
const stNoSymFollow = 0x2000

func openRoot() (int, host.Node, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open("/", walkFlags|unix.O_DIRECTORY, 0)
	})
	if err != nil {
		return noFD, host.Node{}, err
	}
	node, err := nodeOf(fd)
	if err != nil {
		closeFD(fd)
		return noFD, host.Node{}, err
	}
	return fd, node, nil
}

// open looks at name in the directory parent. Missing and Denied are answers, not
// errors.
func open(parent int, name string) (object, error) {
	// O_DIRECTORY first, because only that triggers an automount.
	fd, err := openat(parent, name, walkFlags|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOTDIR) {
		fd, err = openat(parent, name, walkFlags)
	}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENAMETOOLONG): // nothing has such a name
		return object{fd: noFD, node: host.Node{Kind: host.Missing}}, nil
	case errors.Is(err, unix.EACCES):
		return object{fd: noFD, node: host.Node{Kind: host.Denied}}, nil
	case err != nil:
		return object{fd: noFD}, err
	}
	o := object{fd: fd}
	o.node, err = nodeOf(fd)
	if err == nil && o.node.Kind == host.Link {
		err = readLink(parent, &o)
	}
	if err != nil {
		closeFD(fd)
		return object{fd: noFD}, err
	}
	return o, nil
}

func openat(parent int, name string, flags int) (int, error) {
	return retry(func() (int, error) { return unix.Openat(parent, name, flags, 0) })
}

// readLink fills in a link's text, and why it must not be followed. The file system
// is asked of its directory, on which nothing can be mounted between the two: some
// (9p) answer for a link itself with ELOOP.
func readLink(parent int, o *object) error {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(o.fd, "", buf)
	if err != nil {
		return err
	}
	if n == len(buf) {
		return unix.ENAMETOOLONG
	}
	o.node.Target = string(buf[:n])
	var fs unix.Statfs_t
	if err := unix.Fstatfs(parent, &fs); err != nil {
		return err
	}
	switch {
	case int64(fs.Type) == unix.PROC_SUPER_MAGIC:
		// proc(5): what these lead to depends on who asks, and some of them leave
		// the name space altogether.
		o.never = "a link of /proc, which is never followed"
	case int64(fs.Flags)&stNoSymFollow != 0:
		o.never = "on a file system that is mounted nosymfollow"
	}
	return nil
}

func nodeOf(fd int) (host.Node, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return host.Node{}, err
	}
	return nodeFrom(&st), nil
}

func nodeFrom(st *unix.Stat_t) host.Node {
	return host.Node{
		Kind:  kindOf(st.Mode),
		ID:    host.ID{Dev: uint64(st.Dev), Ino: uint64(st.Ino)},
		Nlink: uint64(st.Nlink),
		Rdev:  uint64(st.Rdev),
		Mode:  st.Mode & 0o7777,
		UID:   st.Uid, GID: st.Gid,
	}
}

// descriptorBudget is how many descriptors one survey may keep: a good part of
// the limit is left to pipes, sockets and the operations' duplicates.
func descriptorBudget() int {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return 64
	}
	const reserve, most = 512, 4096
	if lim.Cur <= 2*reserve {
		return 64
	}
	return int(min((lim.Cur-reserve)/3, most))
}

func dupFD(fd int) (int, error) {
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
}

// retry repeats a call that a signal interrupted; file systems in user space
// give EINTR.
func retry(call func() (int, error)) (int, error) {
	for {
		fd, err := call()
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
