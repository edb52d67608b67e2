package roots

import (
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
	mu    sync.Mutex
	at    time.Time
	found []string
	all   bool
}

// privateAge is how old an answer may be: a look at an /etc of 1,200 files takes 2 ms.
const privateAge = time.Second

// Bounds of the places, for each becomes a mount: of those below one directory, in whose
// stead it stands itself, and of all.
const (
	crowd      = 32
	maxPrivate = 256
)

// Below lists, sorted, the topmost directories that are closed to others and the files
// that others cannot read, of those that uid 0 can without a capability. all is false
// where there are more than maxPrivate.
func (p *Private) Below(dirs []string) (found []string, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() || time.Since(p.at) > privateAge {
		p.found, p.all = nil, true
		for _, dir := range dirs {
			p.look(unix.AT_FDCWD, dir, dir)
		}
		slices.Sort(p.found)
		p.at = time.Now()
	}
	return p.found, p.all
}

// look takes one directory: name in parent, path for the answer.
func (p *Private) look(parent int, name, path string) {
	fd, err := openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return // not there, or closed to this caller too
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	before := len(p.found)
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		at := host.Join(path, name)
		switch kindOf(st.Mode) {
		case host.Dir:
			if readable(&st, 5) && st.Mode&5 == 0 {
				p.add(at)
			} else {
				p.look(fd, name, at)
			}
		case host.File:
			if readable(&st, 4) && st.Mode&4 == 0 && st.Size > 0 {
				p.add(at)
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

func (p *Private) add(path string) {
	if len(p.found) == maxPrivate {
		p.all = false
		return
	}
	p.found = append(p.found, path)
}

// private looks at what is root's alone below the base view's settings, for a caller
// that is root.
func (s *survey) private(p *Private) {
	if p == nil || s.r.uid != 0 {
		return
	}
	found, all := p.Below([]string{"/etc", "/usr/local/etc"})
	for _, path := range found {
		if at, err := s.walk(path); err == nil && at == path {
			s.r.private = append(s.r.private, path)
		}
	}
	s.r.more = !all
}
