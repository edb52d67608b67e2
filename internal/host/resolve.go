package host

import (
	"errors"
	"fmt"
	"strings"
)

// MaxHops bounds the symbolic links of one resolution; path_resolution(7) gives
// the kernel's bound, which is the same.
const MaxHops = 40

// Errors of a resolution, for errors.Is. They are the kernel's ELOOP and ENOTDIR.
var (
	ErrLoop   = errors.New("a loop of symbolic links")
	ErrNotDir = errors.New("not a directory")
)

// walk is the state of one resolution.
type walk struct {
	layout  Layout
	res     Resolution
	at      string   // physical path reached so far, "/" first
	todo    []string // components still to be walked
	hops    int
	blocked bool // what follows is appended as spelled
	absent  func(path string, last bool, n Node) bool
}

// Resolve follows path on the layout the way the kernel would, links included.
// It guesses nothing: a component that the layout does not hold, below one that
// exists, gives Kind Unknown. Path must be absolute.
func (l Layout) Resolve(path string) Resolution { return l.ResolveAbsent(path, nil) }

// AnyPlaceholder takes every placeholder for absent; for ResolveAbsent.
func AnyPlaceholder(string, bool, Node) bool { return true }

// ResolveAbsent is Resolve, but a placeholder that absent accepts is missing. It is
// told the placeholder's path, and whether that is the last component.
func (l Layout) ResolveAbsent(path string, absent func(path string, last bool, n Node) bool) Resolution {
	w := walk{layout: l, at: "/", todo: Split(path), absent: absent}
	if !strings.HasPrefix(path, "/") {
		w.res.Err = fmt.Errorf("cannot resolve %q: it is not absolute", path)
		w.res.Path = path
		return w.res
	}
	w.res.Node = l["/"]
	for len(w.todo) > 0 && w.res.Err == nil {
		name := w.todo[0]
		w.todo = w.todo[1:]
		w.step(name)
	}
	w.res.Path = w.at
	return w.res
}

// step walks one component.
func (w *walk) step(name string) {
	if name == ".." {
		w.up()
		return
	}
	next := Join(w.at, name)
	if w.blocked {
		w.at = next
		return
	}
	node, known := w.layout[next]
	if !known {
		// Below a parent that is gone or closed nothing was ever looked at.
		node = Node{Kind: Unknown}
	}
	if node.Placeholder && w.absent != nil && w.absent(next, len(w.todo) == 0, node) {
		node = Node{Kind: Missing}
	}
	switch node.Kind {
	case Link:
		w.follow(next, node)
		return
	case Missing:
		w.res.Missing, w.blocked = next, true
	case Denied, Unknown:
		w.blocked = true
	case Dir:
	default:
		if len(w.todo) > 0 {
			w.res.Err = fmt.Errorf("%q: %w", next, ErrNotDir)
		}
	}
	w.at, w.res.Node = next, node
}

// up takes a ".." of a link's target. Above a component that does not exist the
// kernel fails with ENOENT, so cancelling it lexically would invent a path.
func (w *walk) up() {
	if w.blocked {
		w.res.Err = fmt.Errorf("the way leads through \"..\" below %q, which is not there", w.at)
		return
	}
	w.at = Parent(w.at)
	w.res.Node = w.layout[w.at]
}

// follow replaces a link by its text. Another spelling of a name is no hop: nothing is
// there that could be re-pointed or reproduced.
func (w *walk) follow(at string, node Node) {
	if !node.Respelled {
		w.res.Links = append(w.res.Links, LinkHop{Path: at, Target: node.Target})
	}
	w.hops++
	if w.hops > MaxHops {
		w.res.Err = fmt.Errorf("%q: %w (more than %d)", at, ErrLoop, MaxHops)
		return
	}
	if node.Target == "" {
		w.res.Err = fmt.Errorf("the symbolic link %q is empty", at)
		return
	}
	if strings.HasPrefix(node.Target, "/") {
		w.at = "/"
		w.res.Node = w.layout["/"]
	}
	w.todo = append(Split(node.Target), w.todo...)
}

// Split gives the components of a path without the empty ones and ".".
func Split(path string) []string {
	var out []string
	for _, name := range strings.Split(path, "/") {
		if name != "" && name != "." {
			out = append(out, name)
		}
	}
	return out
}

// Join appends one component to an absolute path.
func Join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// Parent gives the directory of an absolute path; that of "/" is "/".
func Parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/"
	}
	return path[:i]
}

// Beneath says whether path is dir or lies below it. Both are canonical.
func Beneath(path, dir string) bool {
	if dir == "/" || path == dir {
		return strings.HasPrefix(path, "/")
	}
	return len(path) > len(dir) && path[len(dir)] == '/' && strings.HasPrefix(path, dir)
}

// Clean joins a link's text to the directory that holds it, "." and ".." taken
// lexically. Only for paths whose components are known to be no links.
func Clean(dir, target string) string {
	at := dir
	if strings.HasPrefix(target, "/") {
		at = "/"
	}
	for _, name := range Split(target) {
		if name == ".." {
			at = Parent(at)
		} else {
			at = Join(at, name)
		}
	}
	return at
}
