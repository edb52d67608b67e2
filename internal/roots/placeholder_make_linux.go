package roots

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// try makes or opens the placeholder and locks it. False means: the name led
// somewhere else in between, start over.
func (p *placeholder) try() (bool, error) {
	// A descriptor in reserve: what was made and then cannot be opened would stay
	// behind unmarked, and unlinking it could take another helper's mount away.
	spare, err := dupFD(int(p.parent.Fd()))
	if err != nil {
		return false, err
	}
	fd, made, err := p.make()
	unix.Close(spare)
	if errors.Is(err, unix.ENOENT) { // the directory itself is gone
		return false, ErrMoved
	}
	if err != nil {
		return false, err
	}
	// A file that was made here is held already: the name may be another's by now.
	if fd == noFD {
		fd, err = openat(int(p.parent.Fd()), p.name, p.openFlags())
	}
	if made && errors.Is(err, unix.EACCES) {
		fd, err = p.admit()
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), !made && (errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EACCES)):
		return false, ErrMoved // it was missing: another kind, a socket, another user's
	case err != nil:
		return false, err
	}
	pin := false
	done := func(ok bool, err error) (bool, error) {
		switch {
		case pin && !ok && err == nil:
			closeFD(p.pin)
			p.pin = fd
		case !ok || err != nil:
			unix.Close(fd)
		}
		return ok, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return done(false, err)
	}
	id := host.ID{Dev: uint64(st.Dev), Ino: st.Ino}
	if made && (p.op.Class == plan.MaskFile || madeDir(fd, &st)) {
		p.made, pin = id, true
	}
	err = flock(fd, unix.LOCK_SH)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return done(false, nil) // being removed just now
	}
	if !p.leadsTo(id) {
		return done(false, nil)
	}
	own := p.made == id || halfMade(&st) && int(st.Uid) == os.Geteuid() && p.unfinished(fd)
	if own && !(p.whole && p.made == id) {
		if err := p.fill(fd, id); err != nil {
			return done(false, err)
		}
	}
	closeFD(p.pin) // its lock would be in the way of the release
	p.fd, p.id, p.own, p.locked, p.pin = fd, id, own, err == nil, noFD
	return true, nil
}

// flock does not wait for the lock, and is not given up for a signal. It is a variable
// for the test of what happens between an open and its lock.
var flock = func(fd, how int) error {
	_, err := retry(func() (int, error) { return 0, unix.Flock(fd, how|unix.LOCK_NB) })
	return err
}

// mkdirat and create are variables for the tests of what the host does just after them.
var mkdirat, create = unix.Mkdirat, unix.Openat

// make creates the name; false without an error means that it exists. A file is given
// back open: made by name and opened by name again it could be another one.
func (p *placeholder) make() (fd int, made bool, err error) {
	fd, dir := noFD, int(p.parent.Fd())
	whole := false
	if p.op.Class != plan.MaskFile {
		err = mkdirat(dir, p.name, madeDirMode)
	} else if fd, whole = p.link(&err); !whole {
		fd, err = create(dir, p.name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, madeFileMode)
		if err == nil {
			_ = unix.Fchmod(fd, madeFileMode) // whatever the umask: it is written by its path in /proc
		}
	}
	if err != nil {
		closeFD(fd)
		if errors.Is(err, unix.EEXIST) {
			err = nil
		}
		return noFD, false, err
	}
	p.whole = whole
	return fd, true, nil
}

// tmpfile is a variable for the tests of file systems that have none.
var tmpfile = unix.O_TMPFILE

// link makes a file that has its contents and its mark before it has a name, so that
// nobody on the host ever reads half of it, and gives it back open. False means that this
// file system has no files without a name (open(2), O_TMPFILE), or takes no mark on one.
func (p *placeholder) link(why *error) (int, bool) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(int(p.parent.Fd()), ".", tmpfile|unix.O_RDWR|unix.O_CLOEXEC, emptyMode)
	})
	if err != nil {
		return noFD, false
	}
	if _, err := unix.Write(fd, []byte(p.op.Content)); err != nil || unix.Fchmod(fd, p.fileMode()) != nil || !mark(fd) {
		unix.Close(fd)
		return noFD, false
	}
	*why = unix.Linkat(unix.AT_FDCWD, fdPath(fd), int(p.parent.Fd()), p.name, unix.AT_SYMLINK_FOLLOW)
	if *why == nil || errors.Is(*why, unix.EEXIST) {
		return fd, true
	}
	unix.Close(fd)
	return noFD, false
}

func (p *placeholder) fileMode() uint32 {
	if p.op.Content == "" {
		return emptyMode
	}
	return fileMode
}

func (p *placeholder) openFlags() int {
	flags := unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	if p.op.Class == plan.MaskFile {
		return flags | unix.O_RDONLY
	}
	return flags | unix.O_RDONLY | unix.O_DIRECTORY
}

// fill finishes what was made here, or by a helper that was killed. Without a mark it
// is still known as this process's own.
func (p *placeholder) fill(fd int, id host.ID) error {
	if p.op.Class != plan.MaskFile {
		if mark(fd) {
			_ = unix.Chmod(fdPath(fd), dirMode)
		}
		return nil
	}
	if p.op.Content != "" {
		if err := os.WriteFile(fdPath(fd), []byte(p.op.Content), 0); err != nil {
			// A file of other contents could harm its readers on the host.
			half := &placeholder{op: p.op, parent: p.parent, name: p.name, fd: fd, id: id}
			half.op.Content = ""
			return errors.Join(err, unix.Truncate(fdPath(fd), 0), half.remove())
		}
	}
	if !mark(fd) && p.op.Content == "" {
		return nil // known by its mode
	}
	return unix.Fchmod(fd, p.fileMode()) // whatever the umask: the host's git reads it
}

// unfinished says whether nothing is in what looks half made but what belongs there.
func (p *placeholder) unfinished(fd int) bool {
	var buf [maxContent + 1]byte
	if p.op.Class != plan.MaskFile {
		return bare(fd)
	}
	n, err := unix.Pread(fd, buf[:], 0)
	return err == nil && strings.HasPrefix(p.op.Content, string(buf[:n]))
}
