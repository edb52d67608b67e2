package roots

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

// markName is the extended attribute of a placeholder.
const markName = "user.sandboxd.placeholder"

// markTime is the modification time of a placeholder where the file system has no
// user attributes. It also changes as soon as anything is made inside.
var markTime = unix.Timespec{Sec: 1234567890, Nsec: 271828000}

// Modes of placeholders: a directory is nobody else's business, a file with
// contents has to be readable by whoever reads such a file.
const (
	dirMode   = 0o700
	fileMode  = 0o644
	emptyMode = 0o600
	// The sticky bit is that of one that is not finished yet: its helper can be killed
	// before it is marked.
	madeDirMode  = unix.S_ISVTX | dirMode
	madeFileMode = unix.S_ISVTX | emptyMode
)

// maxContent is the size of the longest placeholder file, in bytes.
const maxContent = 16

func fdPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// mark makes a placeholder known as one; false means that this file system takes
// neither mark.
func mark(fd int) bool {
	if unix.Setxattr(fdPath(fd), markName, []byte("1"), 0) == nil {
		return true
	}
	ts := []unix.Timespec{markTime, markTime}
	return unix.UtimesNanoAt(unix.AT_FDCWD, fdPath(fd), ts, 0) == nil && marked(fd)
}

// unmark lets what became somebody's directory or file be theirs.
func unmark(fd int) {
	_ = unix.Removexattr(fdPath(fd), markName)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && halfMade(&st) {
		_ = unix.Chmod(fdPath(fd), st.Mode&0o777)
	}
}

func marked(fd int) bool {
	var value [8]byte
	if _, err := unix.Getxattr(fdPath(fd), markName, value[:]); err == nil {
		return true
	}
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil &&
		(halfMade(&st) || st.Mtim.Sec == markTime.Sec && int64(st.Mtim.Nsec) == int64(markTime.Nsec))
}

// halfMade says whether this is a placeholder whose helper was killed before it had
// finished it. A directory may have its set-group-ID bit from the one above.
func halfMade(st *unix.Stat_t) bool {
	return st.Mode&^unix.S_ISGID == unix.S_IFDIR|madeDirMode ||
		st.Mode == unix.S_IFREG|madeFileMode && st.Nlink == 1 && st.Size <= maxContent
}

// notePlaceholder looks whether the last thing that exists of a path is a placeholder:
// nothing can lie below one. A file system is asked only where that can matter.
func (r *Reached) notePlaceholder(path string) {
	res := r.layout.Resolve(path)
	at := res.Path
	if res.Missing != "" {
		at = host.Parent(res.Missing)
	}
	n := r.layout[at]
	if n.Kind != host.Dir && n.Kind != host.File || int(n.UID) != os.Geteuid() {
		return
	}
	if r.stamp(at); n.Nlink > 2 {
		return
	}
	f, err := r.Dup(at)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrMoved) { // gone since, as a placeholder goes
		r.layout[at] = host.Node{Kind: host.Missing}
	}
	if err != nil {
		r.basis.more = true
		return
	}
	defer f.Close()
	n.Placeholder = leftover(int(f.Fd()), n)
	// It may only have been a shortage that kept the rest from being looked at.
	r.basis.more = r.basis.more || !n.Placeholder && marked(int(f.Fd()))
	r.layout[at] = n
}

// leftover says whether an O_PATH descriptor is that of a placeholder, in use or
// left by a process that was killed. Only this user's are known as such.
func leftover(fd int, n host.Node) bool {
	if int(n.UID) != os.Geteuid() || n.Nlink > 2 {
		return false
	}
	switch {
	// The mode says nothing: a setgid directory, a umask or a file system with modes
	// of its own makes another one of what was asked for.
	case n.Kind == host.Dir:
		return marked(fd) && emptyDir(fd)
	case n.Kind == host.File && n.Nlink == 1:
		var st unix.Stat_t
		return unix.Fstat(fd, &st) == nil && st.Size <= maxContent && marked(fd)
	}
	return false
}

func emptyDir(fd int) bool {
	dir, err := os.Open(fdPath(fd))
	if err != nil {
		return false
	}
	defer dir.Close()
	_, err = dir.Readdirnames(1)
	// What cannot be read is not known to be empty; what was removed meanwhile is.
	return err == io.EOF || errors.Is(err, os.ErrNotExist)
}

// bare says of a directory that is open for reading that nothing is in it.
func bare(fd int) bool {
	var buf [1024]byte
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return false
	}
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if err != nil || n == 0 {
			return err == nil
		}
		if _, _, names := unix.ParseDirent(buf[:n], 1, nil); len(names) > 0 { // but "." and ".."
			return false
		}
	}
}

// holds says whether a placeholder file still has exactly its contents.
func holds(fd int, content string) bool {
	buf := make([]byte, len(content)+1)
	n, err := unix.Pread(fd, buf, 0)
	return err == nil && string(buf[:n]) == content
}
