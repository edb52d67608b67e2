package roots

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// Placeholders are the mount points that one execution's masks need on the host.
type Placeholders struct {
	list []*placeholder
}

// placeholder is one of them. Its lock is this process's alone: the descriptor is
// close-on-exec, since a directory that the jail's init held would be a way out.
type placeholder struct {
	op     plan.Op
	parent *os.File // the directory that was walked to
	name   string
	fd     int     // locked, shared
	id     host.ID // of what is held
	own    bool    // made here
	made   host.ID // what was made here, while its lock is not yet had
	whole  bool    // it was made with its contents and its mark
	locked bool
	at     tree // place within the file system, where known
	known  bool
}

// patience bounds the wait for another process that is removing the same name.
const patience = 5 * time.Second

// Place makes the mount point of every operation that asks for one, or shares the
// one that another execution made. A *plan.Refusal names the path where the file
// system does not let it be made. Nothing is left behind by an error.
func Place(ops []plan.Op, r *Reached) (*Placeholders, error) {
	p := &Placeholders{}
	for _, op := range ops {
		if !op.Placeholder {
			continue
		}
		one, err := place(op, r)
		if err != nil {
			return nil, errors.Join(err, p.Release())
		}
		p.list = append(p.list, one)
	}
	return p, nil
}

// ID gives the inode of the placeholder at a path, which the jail must not see.
func (p *Placeholders) ID(path string) (host.ID, bool) {
	if p == nil {
		return host.ID{}, false
	}
	for _, one := range p.list {
		if one.op.Path == path {
			return one.id, true
		}
	}
	return host.ID{}, false
}

// Release removes the placeholders that nobody else uses. Call it only when the
// jail's init has ended: until then a command of it could plant something under
// the name, and has, in trials. What cannot be removed is named in the error; what
// another execution still uses is left to that one.
func (p *Placeholders) Release() error {
	if p == nil {
		return nil
	}
	var errs []error
	var free []*placeholder
	for i := len(p.list) - 1; i >= 0; i-- {
		one := p.list[i]
		ok, err := one.claim()
		errs = append(errs, err)
		if !ok {
			// At once: this plan may hold the same inode under another name.
			one.close()
			continue
		}
		defer one.close()
		free = append(free, one)
	}
	p.list = nil
	// A mount in use is that of a process that was killed, whose lock is gone before
	// its jail is; the next execution removes the placeholder.
	used := mountsOn(free)
	for _, one := range free {
		if !used[one] {
			errs = append(errs, one.remove())
		}
	}
	return errors.Join(errs...)
}

func place(op plan.Op, r *Reached) (*placeholder, error) {
	dir := host.Parent(op.Path)
	parent, err := r.Dup(dir)
	if err != nil {
		return nil, refusePlace(op, err)
	}
	p := &placeholder{op: op, parent: parent, name: base(op.Path), fd: noFD}
	if r.places != nil {
		p.at, p.known = r.places.treeOf(dir)
		p.at.path = host.Join(p.at.path, p.name)
	}
	end := time.Now().Add(patience)
	for {
		ok, err := p.try()
		switch {
		case err != nil:
			p.close()
			return nil, refusePlace(op, err)
		case ok:
			return p, nil
		case time.Now().After(end):
			p.close()
			return nil, refusePlace(op, errors.New("something else keeps making and removing it"))
		}
		time.Sleep(time.Millisecond)
	}
}

// try makes or opens the placeholder and locks it. False means: the name led
// somewhere else in between, start over.
func (p *placeholder) try() (bool, error) {
	// A descriptor in reserve: what was made and then cannot be opened would stay
	// behind unmarked, and unlinking it could take another helper's mount away.
	spare, err := dupFD(int(p.parent.Fd()))
	if err != nil {
		return false, err
	}
	made, err := p.make()
	unix.Close(spare)
	if err != nil {
		return false, err
	}
	fd, err := openat(int(p.parent.Fd()), p.name, p.openFlags())
	if made && errors.Is(err, unix.EACCES) {
		fd, err = p.admit()
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return false, errMoved
	case err != nil:
		return false, err
	}
	done := func(ok bool, err error) (bool, error) {
		if !ok || err != nil {
			unix.Close(fd)
		}
		return ok, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return done(false, err)
	}
	id := host.ID{Dev: uint64(st.Dev), Ino: st.Ino}
	if made {
		p.made = id
	}
	err = flock(fd, unix.LOCK_SH)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return done(false, nil) // being removed just now
	}
	if !p.leadsTo(id) {
		return done(false, nil)
	}
	own := p.made == id || halfMade(&st) && int(st.Uid) == os.Geteuid()
	if own && !p.whole {
		if err := p.fill(fd); err != nil {
			return done(false, err)
		}
	}
	p.fd, p.id, p.own, p.locked = fd, id, own, err == nil
	return true, nil
}

// flock does not wait for the lock, and is not given up for a signal.
func flock(fd, how int) error {
	_, err := retry(func() (int, error) { return 0, unix.Flock(fd, how|unix.LOCK_NB) })
	return err
}

// make creates the name; false without an error means that it exists.
func (p *placeholder) make() (bool, error) {
	p.whole = false
	var err error
	switch {
	case p.op.Class != plan.MaskFile:
		err = unix.Mkdirat(int(p.parent.Fd()), p.name, madeDirMode)
	case p.link(&err):
		p.whole = err == nil
	default:
		var fd int
		fd, err = unix.Openat(int(p.parent.Fd()), p.name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, madeFileMode)
		if err == nil {
			unix.Close(fd)
		}
	}
	if errors.Is(err, unix.EEXIST) {
		return false, nil
	}
	return err == nil, err
}

// tmpfile is a variable for the tests of file systems that have none.
var tmpfile = unix.O_TMPFILE

// link makes a file that has its contents and its mark before it has a name, so that
// nobody on the host ever reads half of it. False means that this file system has no
// files without a name (open(2), O_TMPFILE), or takes no mark on one.
func (p *placeholder) link(why *error) bool {
	fd, err := retry(func() (int, error) {
		return unix.Openat(int(p.parent.Fd()), ".", tmpfile|unix.O_RDWR|unix.O_CLOEXEC, emptyMode)
	})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(p.op.Content)); err != nil || unix.Fchmod(fd, p.fileMode()) != nil || !mark(fd) {
		return false
	}
	*why = unix.Linkat(unix.AT_FDCWD, fdPath(fd), int(p.parent.Fd()), p.name, unix.AT_SYMLINK_FOLLOW)
	return *why == nil || errors.Is(*why, unix.EEXIST)
}

// admit opens what was made just now with a umask that shuts its owner out. Only
// that: whatever else stands there by now keeps its mode.
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
	kind, mode := host.Dir, uint32(madeDirMode)
	if p.op.Class == plan.MaskFile {
		kind, mode = host.File, madeFileMode
	}
	if node.Kind != kind || int(node.UID) != os.Geteuid() || node.Nlink > 2 || kind == host.File && node.Nlink > 1 {
		return noFD, unix.EACCES
	}
	// Through /proc, because fchmod(2) takes no O_PATH descriptor.
	if err := unix.Chmod(fdPath(at), mode); err != nil {
		return noFD, err
	}
	return openat(int(p.parent.Fd()), p.name, p.openFlags())
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
func (p *placeholder) fill(fd int) error {
	if p.op.Class != plan.MaskFile {
		if mark(fd) {
			_ = unix.Chmod(fdPath(fd), dirMode)
		}
		return nil
	}
	if p.op.Content != "" {
		if err := os.WriteFile(fdPath(fd), []byte(p.op.Content), 0); err != nil {
			// A file of other contents could harm its readers on the host.
			return errors.Join(err, unix.Unlinkat(int(p.parent.Fd()), p.name, 0))
		}
	}
	if !mark(fd) && p.op.Content == "" {
		return nil // known by its mode
	}
	return unix.Fchmod(fd, p.fileMode()) // whatever the umask: the host's git reads it
}

// leadsTo says whether the name still is this inode.
func (p *placeholder) leadsTo(id host.ID) bool {
	var st unix.Stat_t
	err := unix.Fstatat(int(p.parent.Fd()), p.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && host.ID{Dev: uint64(st.Dev), Ino: st.Ino} == id
}

// claim takes the exclusive lock and says whether the placeholder may be removed.
func (p *placeholder) claim() (bool, error) {
	if !p.locked {
		return false, fmt.Errorf("cannot remove the placeholder %q: this file system has no locks, so whether it is in use is unknown; remove it by hand", p.op.Path)
	}
	err := flock(p.fd, unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil // the last one removes it
	}
	if err != nil {
		return false, fmt.Errorf("cannot remove the placeholder %q: %w", p.op.Path, err)
	}
	if !p.own && !marked(p.fd) || !p.leadsTo(p.id) {
		return false, nil // somebody's own
	}
	if p.op.Class == plan.MaskFile && !holds(p.fd, p.op.Content) {
		unmark(p.fd) // written on the host meanwhile
		return false, nil
	}
	return true, nil
}

// remove ends a claimed placeholder.
func (p *placeholder) remove() error {
	flags := unix.AT_REMOVEDIR
	if p.op.Class == plan.MaskFile {
		flags = 0
	}
	err := unix.Unlinkat(int(p.parent.Fd()), p.name, flags)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		unmark(p.fd) // the host put something there: it is the host's now
		return nil
	}
	return fmt.Errorf("cannot remove the placeholder %q: %w; remove it by hand", p.op.Path, err)
}

func (p *placeholder) close() {
	closeFD(p.fd)
	p.fd = noFD
	p.parent.Close()
}

// refusePlace says in this program's words why a path cannot be kept uncreatable.
func refusePlace(op plan.Op, err error) error {
	if short(err) { // no fault of the policy
		return fmt.Errorf("cannot make the mount point %s on the host: %w; raise the limit or try again", show(op.Path), err)
	}
	var advice string
	switch {
	case errors.Is(err, unix.EROFS):
		advice = "its directory is on a read-only file system; make the root that holds it readable instead of writable"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		advice = "this user may not write its directory; make that directory no writable root, or create the path"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		advice = "the file system is full; make room"
	default:
		advice = "create the path, or take it out of the list"
	}
	list := op.Origin.List
	if op.Origin.Index >= 0 && list != "" {
		list = fmt.Sprintf("%s[%d]", list, op.Origin.Index)
	}
	return &plan.Refusal{List: list, Path: op.Origin.Path, Reason: fmt.Sprintf("needs the mount point %s on the host, which cannot be made: %v: %s", show(op.Path), err, advice)}
}
