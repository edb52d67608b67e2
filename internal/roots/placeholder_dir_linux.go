package roots

import (
	"os"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// madeDir says whether the directory that stands where one was made just now is that
// one, as far as can be seen: mkdir(2) gives no descriptor. Where the file system has
// modes of its own, so that the sticky bit never is there, being empty has to do.
func madeDir(fd int, st *unix.Stat_t) bool {
	if int(st.Uid) != os.Geteuid() || st.Nlink > 2 || !bare(fd) {
		return false
	}
	if mode := st.Mode &^ unix.S_ISGID; mode&unix.S_ISVTX != 0 {
		return mode&^dirMode == unix.S_IFDIR|unix.S_ISVTX // a umask may have taken the rest
	}
	if marked(fd) { // another helper has finished it
		return true
	}
	var now unix.Stat_t
	if unix.Fchmod(fd, st.Mode&0o7777|unix.S_ISVTX) != nil || unix.Fstat(fd, &now) != nil || now.Mode&unix.S_ISVTX == 0 {
		return true
	}
	_ = unix.Fchmod(fd, st.Mode&0o7777) // it takes the bit, so this one was made without: the host's
	return false
}

// admit opens a directory that was made just now with a umask that shuts its owner out.
// Only that: whatever else stands there by now keeps its mode.
func (p *placeholder) admit() (int, error) {
	at, err := openat(int(p.parent.Fd()), p.name, walkFlags)
	if err != nil {
		return noFD, err
	}
	defer unix.Close(at)
	node, err := nodeOf(at)
	if err != nil {
		return noFD, err
	}
	if p.op.Class == plan.MaskFile || node.Kind != host.Dir || int(node.UID) != os.Geteuid() || node.Nlink > 2 {
		return noFD, unix.EACCES
	}
	// Through /proc, because fchmod(2) takes no O_PATH descriptor.
	if err := unix.Chmod(fdPath(at), madeDirMode); err != nil {
		return noFD, err
	}
	return openat(int(p.parent.Fd()), p.name, p.openFlags())
}
