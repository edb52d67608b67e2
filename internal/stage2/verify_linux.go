package stage2

import (
	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/stage2/spec"
)

// look asks whether this is a jail at all: a bubblewrap that merely executed its last
// argument would get here too.
func (p *process) look() *spec.Failure {
	// First: without new namespaces nothing else here means what it says.
	for _, look := range []func() *spec.Failure{p.verifyNamespaces, p.verifyPrivileges, p.verifyView} {
		if f := look(); f != nil {
			return f
		}
	}
	return nil
}

// notSame says how the inode at c.Path differs from the one the helper reached.
// lstat: no destination has a link as a component, so a link is a difference.
func notSame(c spec.Check) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(c.Path, &st); err != nil {
		return "cannot be seen in the jail", err
	}
	if identity(&st) != c.ID {
		return "is another inode than the one that was checked: it was replaced meanwhile; run again", nil
	}
	if c.Rdev != 0 && uint64(st.Rdev) != c.Rdev {
		return "is another device than the one that was checked", nil
	}
	return "", nil
}

// notHidden says why the host's content at c.Path is not masked.
func notHidden(c spec.Check) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(c.Path, &st); err != nil {
		return "has no mask in the jail", err
	}
	if c.ID != (host.ID{}) && identity(&st) == c.ID {
		return "is not masked: the host's inode shows", nil
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return "is masked by something that is neither a directory nor a regular file", nil
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(c.Path, &fs); err != nil {
		return "has a mask that cannot be examined", err
	}
	if fs.Flags&unix.ST_RDONLY == 0 {
		return "has a mask that is not read-only", nil
	}
	if kind == unix.S_IFDIR {
		return notEmpty(c.Path)
	}
	return "", nil
}

// notEmpty lists a directory. One that cannot be opened shows nothing either.
func notEmpty(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.EACCES {
		return "", nil
	}
	if err != nil {
		return "has a mask that cannot be listed", err
	}
	defer unix.Close(fd)
	var buf [512]byte
	for {
		n, err := unix.Getdents(fd, buf[:])
		if err != nil {
			return "has a mask that cannot be listed", err
		}
		if n == 0 {
			return "", nil
		}
		// "." and ".." are left out by ParseDirent.
		if _, _, names := unix.ParseDirent(buf[:n], 1, nil); len(names) > 0 {
			return "has a mask that is not empty", nil
		}
	}
}

func (p *process) verifyNamespaces() *spec.Failure {
	for _, ns := range p.spec.Namespaces {
		var st unix.Stat_t
		if err := unix.Stat("/proc/thread-self/ns/"+ns.Name, &st); err != nil {
			return failure(spec.StepNamespaces, "cannot examine the "+ns.Name+" namespace", err)
		}
		if st.Ino == ns.Ino {
			return failure(spec.StepNamespaces, "the "+ns.Name+" namespace is the helper's own: bubblewrap did not make a new one", nil)
		}
		p.report.Namespaces = append(p.report.Namespaces, ns.Name)
	}
	return nil
}

func identity(st *unix.Stat_t) host.ID { return host.ID{Dev: uint64(st.Dev), Ino: st.Ino} }
