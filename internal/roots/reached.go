package roots

import (
	"errors"
	"fmt"
	"os"

	"sandboxd/internal/host"
)

// noFD stands for an object that is known but not held open.
const noFD = -1

// maxDirs bounds the directories that a survey holds open only to walk on.
const maxDirs = 128

// ErrMoved is a name that leads to another object than it did: a fresh look may succeed.
var ErrMoved = errors.New("it changed while it was being reached; run it again when nothing else changes it")

// Reached is what one survey met. It is used by one goroutine at a time.
type Reached struct {
	layout host.Layout
	never  map[string]string // links that are never followed, and why
	dirs   map[string]int    // directories held to walk on
	order  []string          // of dirs, oldest first
	kept   map[string]int    // what was asked for, held until Close
	budget int               // how many more may be kept
	uid    int
	places *places

	aliases host.Aliases
	kernel  []host.KernelMount
	private []string
	more    bool // than private

	basis basis
}

func newReached() (*Reached, error) {
	r := &Reached{
		layout: host.Layout{},
		never:  map[string]string{},
		dirs:   map[string]int{},
		kept:   map[string]int{},
		basis:  newBasis(),
		budget: descriptorBudget(),
		uid:    os.Geteuid(),
	}
	fd, node, err := openRoot()
	if err != nil {
		return nil, fmt.Errorf("cannot open the root directory: %w", err)
	}
	r.layout["/"] = node
	r.kept["/"] = fd
	return r, nil
}

// Layout gives every component that the survey met. The caller does not change it.
func (r *Reached) Layout() host.Layout { return r.layout }

// Aliases gives the other names of what Writability.Narrow listed.
func (r *Reached) Aliases() host.Aliases { return r.aliases }

// Kernel gives the mounts of the kernel's own file systems inside what Writability.Paths
// and, of processes, what Writability.Narrow names.
func (r *Reached) Kernel() []host.KernelMount { return r.kernel }

// Private gives what Writability.Private found, and whether there is more.
func (r *Reached) Private() (paths []string, more bool) { return r.private, r.more }

// Node gives what the survey saw at a physical path.
func (r *Reached) Node(physical string) (host.Node, bool) {
	node, ok := r.layout[physical]
	return node, ok
}

// Dup gives a new close-on-exec descriptor (O_PATH on Linux) of the very object
// that the survey saw at a physical path, for one operation; the caller closes it.
// A path that no longer leads there is an error.
func (r *Reached) Dup(physical string) (*os.File, error) {
	node, ok := r.layout[physical]
	if !ok || node.Kind <= host.Denied {
		return nil, fmt.Errorf("cannot reach %q: %w", physical, os.ErrNotExist)
	}
	fd, err := r.dup(physical, node)
	if err != nil {
		return nil, fmt.Errorf("cannot reach %q: %w", physical, err)
	}
	return os.NewFile(uintptr(fd), physical), nil
}

func (r *Reached) dup(physical string, node host.Node) (int, error) {
	if fd, ok := r.held(physical); ok {
		return dupFD(fd)
	}
	if physical == "/" {
		fd, err := r.rootFD()
		if err != nil {
			return noFD, err
		}
		return dupFD(fd)
	}
	parent, err := r.dirFD(host.Parent(physical))
	if err != nil {
		return noFD, err
	}
	fd, err := reopen(parent, base(physical), node)
	if err == nil && fd == noFD {
		err = errors.ErrUnsupported // a platform that cannot hold this kind of object
	}
	return fd, err
}

// Close gives every descriptor back.
func (r *Reached) Close() error {
	for _, set := range []map[string]int{r.dirs, r.kept} {
		for path, fd := range set {
			closeFD(fd)
			delete(set, path)
		}
	}
	r.order, r.basis.renewed = nil, false
	return nil
}

// lookAt is a variable for the tests of file systems that fail.
var lookAt = open

// look gives the node of name in the directory dir, looking at the file system at
// most once: what a path was at first is what it is for the whole survey.
func (r *Reached) look(dir, name, path string) (host.Node, error) {
	if node, ok := r.layout[path]; ok {
		return node, nil
	}
	parent, err := r.dirFD(dir)
	if errors.Is(err, os.ErrPermission) {
		r.layout[path] = host.Node{Kind: host.Denied}
		return r.layout[path], nil
	}
	if err != nil {
		return host.Node{}, fmt.Errorf("cannot be reached: %s: %w", show(dir), err)
	}
	o, err := lookAt(parent, name)
	if err != nil {
		return host.Node{}, fmt.Errorf("cannot be reached: %s: %w", show(path), err)
	}
	r.layout[path] = o.node
	switch {
	case o.node.Kind == host.Dir && o.fd != noFD:
		r.hold(path, o.fd)
	case o.node.Kind == host.Link:
		if o.never != "" {
			r.never[path] = o.never
		}
		closeFD(o.fd)
	case o.fd != noFD && r.budget > 0:
		r.budget--
		r.kept[path] = o.fd
	default:
		closeFD(o.fd)
	}
	return o.node, nil
}

// keep holds the object at a physical path until Close, if the budget allows.
func (r *Reached) keep(path string) {
	fd, ok := r.dirs[path]
	if !ok || r.budget == 0 {
		return
	}
	r.budget--
	r.kept[path] = fd
	delete(r.dirs, path)
}

func (r *Reached) held(path string) (int, bool) {
	if fd, ok := r.kept[path]; ok {
		return fd, true
	}
	fd, ok := r.dirs[path]
	return fd, ok
}

// dirFD gives a descriptor of a directory that the survey met; it belongs to r.
func (r *Reached) dirFD(path string) (int, error) {
	if fd, ok := r.held(path); ok {
		return fd, nil
	}
	node, ok := r.layout[path]
	if !ok || node.Kind != host.Dir {
		return noFD, fmt.Errorf("%q is not a directory", path)
	}
	if path == "/" {
		return r.rootFD()
	}
	parent, err := r.dirFD(host.Parent(path))
	if err != nil {
		return noFD, err
	}
	fd, err := reopen(parent, base(path), node)
	if err == nil && fd == noFD {
		err = os.ErrPermission // a directory that can be seen but not searched
	}
	if err != nil {
		return noFD, err
	}
	r.hold(path, fd)
	return fd, nil
}

// hold keeps a directory to walk on, in place of the oldest one where there are
// too many.
func (r *Reached) hold(path string, fd int) {
	for len(r.dirs) >= maxDirs {
		oldest := r.order[0]
		r.order = r.order[1:]
		if old, ok := r.dirs[oldest]; ok {
			closeFD(old)
			delete(r.dirs, oldest)
		}
	}
	r.dirs[path] = fd
	r.order = append(r.order, path)
}

// object is what one name led to.
type object struct {
	fd    int // noFD where nothing is held
	node  host.Node
	never string // why a link must not be followed
}

// reopen opens name again and insists on the object that was seen before.
func reopen(parent int, name string, want host.Node) (int, error) {
	o, err := open(parent, name)
	if err != nil {
		return noFD, err
	}
	if o.node.ID != want.ID || o.node.Kind != want.Kind {
		closeFD(o.fd)
		return noFD, ErrMoved
	}
	return o.fd, nil
}

// base gives the last component of an absolute path.
func base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}
