package roots

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// asidePrefix is that of the name under which a file placeholder is looked at before it
// is unlinked. It follows from the file's own name, so that whoever places that one again
// finds what a killed helper left.
const asidePrefix = ".sandboxd-removing-"

// renameat2 is a variable for the tests of file systems without its flags, and of what
// happens just before it.
var renameat2 = unix.Renameat2

// intact says whether the placeholder stands under a name in its directory with nothing
// in it but its own contents. It unmarks what was written on the host meanwhile.
func (p *placeholder) intact(name string) bool {
	if !p.names(name, p.id) {
		return false // somebody's own
	}
	if p.op.Class == plan.MaskFile && !holds(p.fd, p.op.Content) {
		unmark(p.fd)
		return false
	}
	return true
}

// remove ends a claimed placeholder. The claim can be seconds old, and programs on the
// host replace a file by renaming another one over it: what the name is now is looked at
// once more, and nothing but the placeholder is unlinked.
//
// What remains: an empty directory that the host renames there in the microseconds
// between the look and rmdir(2), which loses a name; what is written through a descriptor
// that the host had opened on the placeholder itself; where a file cannot be moved aside,
// one that is renamed there in those microseconds; and a helper killed in the next ones
// leaves the host's file aside.
func (p *placeholder) remove() error {
	if !p.intact(p.name) {
		return nil
	}
	dir := int(p.parent.Fd())
	if p.op.Class == plan.MaskFile {
		if moved, err := p.moveAside(); err != nil || moved {
			return err
		}
		if !p.intact(p.name) {
			return nil
		}
		return p.removed(unix.Unlinkat(dir, p.name, 0))
	}
	err := unix.Unlinkat(dir, p.name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		unmark(p.fd) // the host put something there: it is the host's now
		return nil
	}
	return p.removed(err)
}

func (p *placeholder) removed(err error) error {
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("cannot remove the placeholder %q: %w; remove it by hand", p.op.Path, err)
}

// moveAside takes whatever the name is now to a name that no program on the host knows,
// looks at it there, and unlinks it or puts it back. False says that it could not be
// moved: the file system has no flags for that (rename(2), EINVAL), or the other name is
// taken. A command may have made something there, so nothing is ever put back that was
// not taken away here: it would get a protected name.
func (p *placeholder) moveAside() (bool, error) {
	dir, aside := int(p.parent.Fd()), asidePrefix+p.name
	err := renameat2(dir, p.name, dir, aside, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		sweepAside(p)
		err = renameat2(dir, p.name, dir, aside, unix.RENAME_NOREPLACE)
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return true, nil
	case err != nil:
		return false, nil
	case p.intact(aside):
		return true, p.removed(unix.Unlinkat(dir, aside, 0))
	}
	err = renameat2(dir, aside, dir, p.name, unix.RENAME_NOREPLACE)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return true, nil
	}
	return true, fmt.Errorf("cannot put back what was made at %q on the host while its placeholder was removed: %w; it is %q beside it now", p.op.Path, err, aside)
}

// sweepAside removes a placeholder that a helper left aside which was killed in between,
// and says whether something else has that name, which stays.
func sweepAside(p *placeholder) (other bool) {
	left := &placeholder{op: p.op, parent: p.parent, name: asidePrefix + p.name, fd: noFD}
	if p.op.Class != plan.MaskFile || !left.there() {
		return false
	}
	fd, err := openat(int(p.parent.Fd()), left.name, p.openFlags())
	if err != nil {
		return !errors.Is(err, unix.ENOENT)
	}
	defer closeFD(fd)
	node, err := nodeOf(fd)
	left.fd, left.id = fd, node.ID
	if err != nil || !leftover(fd, node) {
		return true
	}
	// Whoever is about to unlink it has the lock, and nobody moves anything over it.
	if flock(fd, unix.LOCK_EX) == nil && left.intact(left.name) {
		_ = unix.Unlinkat(int(p.parent.Fd()), left.name, 0)
	}
	return false
}

// strange says what cannot be put back: a helper that was killed may have moved the
// host's own file aside, or a command have made one, to have it under the other name.
func (p *placeholder) strange() error {
	aside := &placeholder{parent: p.parent, name: asidePrefix + p.name}
	if !p.other || !aside.there() {
		return nil
	}
	at := host.Join(host.Parent(p.op.Path), aside.name)
	return fmt.Errorf("%q is the host's own file, left there by a helper that was killed while it removed the placeholder %q, or a command made it; look at it, and rename it back or remove it", at, p.op.Path)
}

// there says whether the name is a regular file.
func (p *placeholder) there() bool {
	var st unix.Stat_t
	return unix.Fstatat(int(p.parent.Fd()), p.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}
