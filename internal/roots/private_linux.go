package roots

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

// Private knows what below some directories root alone may read: file modes hide it from
// everybody but a command that is the host's uid 0. Safe for concurrent use.
type Private struct {
	mu      sync.Mutex
	at      time.Time // of the look
	checked time.Time // when nothing had changed since
	notice  notice
	found   []string
	all     bool
	err     error // what it met is not known
	seen    []seen
}

// seen is what a file or directory was like.
type seen struct {
	path    string
	dev     uint64
	ino     uint64
	changed unix.Timespec
}

// How old an answer may be where nothing was heard: a look at an /etc of 1,200 files
// takes 2 ms, and one at its 150 directories and the files that are still empty 0.2 ms.
// What that does not show, and is only heard of, is a mode that is taken from a file
// which everybody could read so far.
const (
	privateAge = time.Second
	surelyAge  = 30 * time.Second
)

// Bounds of the places, for each becomes a mount: of those below one directory, in whose
// stead it stands itself, and of all.
const (
	crowd      = 32
	maxPrivate = 256
)

// Ready opens ahead what a look keeps open: the descriptors of a process are then as many
// before its first look as after it.
func (p *Private) Ready() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice.begin()
}

// Below lists, sorted, the topmost directories that are closed to others and the files
// that others cannot read, of those that uid 0 can without a capability. all is false
// where there are more than maxPrivate, or a directory could not be read to its end.
func (p *Private) Below(dirs []string) (found []string, all bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.holds() {
		p.at = time.Now()
		p.checked = p.at
		p.found, p.seen, p.all, p.err = nil, nil, true, nil
		p.notice.begin()
		for _, dir := range dirs {
			p.look(unix.AT_FDCWD, dir, dir)
		}
		slices.Sort(p.found)
		// Not before: of what one crowded directory holds only that directory counts.
		if len(p.found) > maxPrivate {
			p.found, p.all = p.found[:maxPrivate], false
		}
	}
	return p.found, p.all, p.err
}

// holds says whether the answer is still the same. It need not be asked for, for a
// moment, where a change would have been heard of.
func (p *Private) holds() bool {
	if p.at.IsZero() || p.err != nil || time.Since(p.at) > surelyAge {
		return false
	}
	hears := p.notice.fd > 0
	if hears && p.notice.heard() {
		return false
	}
	if time.Since(p.checked) <= privateAge {
		return true
	}
	if p.changed() {
		return false
	}
	if hears {
		p.checked = time.Now()
	}
	return true
}

// changed says whether something came, went, or is no longer empty.
func (p *Private) changed() bool {
	return slices.ContainsFunc(p.seen, func(was seen) bool {
		var st unix.Stat_t
		return unix.Lstat(was.path, &st) != nil || was != seenAs(was.path, &st)
	})
}

func seenAs(path string, st *unix.Stat_t) seen {
	return seen{path, uint64(st.Dev), st.Ino, st.Ctim}
}

// failed notes an error after which nothing may count as absent: any but that something
// has gone, or that this caller, and so the command, is not let in.
func (p *Private) failed(path string, err error) {
	for _, gone := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES} {
		if errors.Is(err, gone) {
			return
		}
	}
	if p.err == nil {
		p.err = fmt.Errorf("%s: %w", show(path), err)
	}
}

// fstatat is a variable for the tests of file systems that fail.
var fstatat = unix.Fstatat

// look takes one directory: name in parent, path for the answer.
func (p *Private) look(parent int, name, path string) {
	fd, err := openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil { // not there, or closed to this caller too
		p.failed(path, err)
		return
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var dir unix.Stat_t
	if err := unix.Fstat(fd, &dir); err != nil {
		p.failed(path, err)
	}
	p.seen = append(p.seen, seenAs(path, &dir)) // before it is read
	p.notice.add(fd)
	names, err := f.Readdirnames(-1)
	if err != nil {
		p.all = false
		p.failed(path, err)
	}
	before := len(p.found)
	for _, name := range names {
		at := host.Join(path, name)
		var st unix.Stat_t
		if err := fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			p.failed(at, err)
			continue
		}
		switch kindOf(st.Mode) {
		case host.Dir:
			if readable(&st, 5) && st.Mode&5 == 0 {
				p.found = append(p.found, at)
			} else {
				p.look(fd, name, at)
			}
		case host.File:
			switch {
			case !readable(&st, 4) || st.Mode&4 != 0:
			case st.Size > 0:
				p.found = append(p.found, at)
			default:
				p.seen = append(p.seen, seenAs(at, &st))
			}
		}
	}
	// A mount for each of very many costs more than the others are worth.
	if len(p.found)-before > crowd && parent != unix.AT_FDCWD {
		p.found = append(p.found[:before], path)
	}
}

// readable says whether uid 0 has one of the rights without a capability.
func readable(st *unix.Stat_t, rights uint32) bool {
	return st.Uid == 0 && st.Mode>>6&rights != 0 || st.Uid != 0 && st.Gid == 0 && st.Mode>>3&rights != 0
}

// settings are the directories of the base view with what is root's alone in them.
var settings = []string{"/etc", "/usr/local/etc"}

// private looks at what is root's alone below the base view's settings, for a caller
// that is root.
func (s *survey) private(p *Private) error {
	if p == nil || s.r.uid != 0 {
		return nil
	}
	found, all, err := p.Below(settings)
	if err != nil {
		return fmt.Errorf("cannot look for what is root's alone: %w", err)
	}
	s.r.basis.private = found
	for _, path := range found {
		at, err := s.walk(path)
		if s.unseen(path, err) {
			return err // else it would silently count as absent
		}
		if err == nil && at == path {
			s.r.private = append(s.r.private, path)
		}
	}
	s.r.more = !all
	return nil
}
