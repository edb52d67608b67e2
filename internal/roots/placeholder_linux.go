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
	pin    int     // on it, meanwhile: without it another file could get its number
	whole  bool    // it was made with its contents and its mark
	locked bool
	other  bool // something else has the name under which it is looked at before it goes
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

func place(op plan.Op, r *Reached) (*placeholder, error) {
	dir := host.Parent(op.Path)
	parent, err := r.Dup(dir)
	if err != nil {
		return nil, refusePlace(op, err)
	}
	p := &placeholder{op: op, parent: parent, name: base(op.Path), fd: noFD, pin: noFD}
	p.other = sweepAside(p)
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

// leadsTo says whether the name still is this inode.
func (p *placeholder) leadsTo(id host.ID) bool { return p.names(p.name, id) }

// names says that of any name in the directory.
func (p *placeholder) names(name string, id host.ID) bool {
	var st unix.Stat_t
	err := unix.Fstatat(int(p.parent.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && host.ID{Dev: uint64(st.Dev), Ino: st.Ino} == id
}

func (p *placeholder) close() {
	closeFD(p.fd)
	closeFD(p.pin)
	p.fd, p.pin = noFD, noFD
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
	refusal := &plan.Refusal{List: list, Path: op.Origin.Path, Reason: fmt.Sprintf("needs the mount point %s on the host, which cannot be made: %v: %s", show(op.Path), err, advice)}
	if errors.Is(err, ErrMoved) {
		return movedRefusal{refusal}
	}
	return refusal
}

// movedRefusal is one that a fresh look may not meet.
type movedRefusal struct{ *plan.Refusal }

func (m movedRefusal) Unwrap() []error { return []error{m.Refusal, ErrMoved} }
