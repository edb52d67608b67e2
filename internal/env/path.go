package env

import (
	"fmt"
	"strings"

	"sandboxd/internal/host"
)

// path rebuilds PATH, or only the look-up list where PATH is not allowed.
func (b *builder) path() {
	allowed := b.allow["PATH"]
	list := candidates("", "")
	if allowed {
		list = candidates(b.env["PATH"], b.in.HelperPath)
	}
	f := newFilter(b.in)
	seen := map[string]bool{}
	for _, c := range list {
		dir, why := f.judge(c)
		if why != "" {
			b.drop(Dropped{Name: "PATH", Dir: c.spelled, Reason: why})
			continue
		}
		if !seen[dir] {
			seen[dir] = true
			b.dirs = append(b.dirs, dir)
		}
	}
	if !allowed {
		return
	}
	b.env["PATH"] = NoPath
	if len(b.dirs) > 0 {
		b.env["PATH"] = strings.Join(b.dirs, ":")
	}
}

// filter decides which directories may be on PATH.
type filter struct {
	in       Input
	writable map[string]bool  // physical paths
	ids      map[host.ID]bool // of the same, for other names of the same inode
	root     bool             // "/" is among them
}

func newFilter(in Input) *filter {
	f := &filter{in: in, writable: map[string]bool{}, ids: map[host.ID]bool{}}
	for _, w := range append([]string{in.Scratch}, in.Writable...) {
		if w == "" {
			continue
		}
		if w == "/" {
			f.root = true
			continue
		}
		f.writable[w] = true
		if id := in.Layout[w].ID; id != (host.ID{}) {
			f.ids[id] = true
		}
	}
	return f
}

// judge gives the resolved form of a directory, or why it must not be on PATH.
// The resolved form goes into PATH because it is the one that was judged: the
// spelling may lead through links that the jail does not have.
func (f *filter) judge(c candidate) (dir, why string) {
	if c.excess {
		return "", fmt.Sprintf("more than %d directories or %d bytes", maxDirs, maxList)
	}
	if why := reason(c.spelled); why != "" {
		return "", why
	}
	res := f.in.Layout.Resolve(c.spelled)
	switch {
	case res.Err != nil:
		return "", "it cannot be resolved: " + res.Err.Error()
	case res.Node.Kind == host.Missing:
		return "", "it does not exist"
	case res.Node.Kind != host.Dir:
		return "", "it is not a directory that this user can look into"
	case strings.Contains(res.Path, ":"):
		return "", fmt.Sprintf("it is %q, and the colon would split it", res.Path)
	}
	// A link that the jail can replace would let one command choose where the next
	// one's tools come from, wherever it leads today.
	for _, hop := range res.Links {
		if why := f.under(host.Parent(hop.Path)); why != "" {
			return "", fmt.Sprintf("it is reached through the link %q, and %s", hop.Path, why)
		}
	}
	if why := f.under(res.Path); why != "" {
		return "", why
	}
	return f.seen(res.Path)
}

// seen asks the view. A directory that the command cannot read is left out: it
// would only turn "not found" into "permission denied".
func (f *filter) seen(dir string) (string, string) {
	if f.in.View == nil {
		return dir, ""
	}
	readable, writable := f.in.View(dir)
	switch {
	case writable:
		return "", "the jail can write it"
	case !readable:
		return "", "the jail does not have it"
	}
	return dir, ""
}

// fresh are made anew for each jail, so what the host has there says nothing, and
// both hold names that lead anywhere (/proc/self/cwd, /dev/shm).
var fresh = []string{"/proc", "/dev"}

// under says why nothing in dir can be trusted, or "". Below a writable "/" the
// system directories stay read-only, so there the view decides.
func (f *filter) under(dir string) string {
	for _, p := range fresh {
		if host.Beneath(dir, p) {
			return fmt.Sprintf("%q is made anew for each jail", p)
		}
	}
	for at := dir; at != "/"; at = host.Parent(at) {
		id := f.in.Layout[at].ID
		if f.writable[at] || id != (host.ID{}) && f.ids[id] {
			return fmt.Sprintf("the jail can write %q", at)
		}
	}
	if dir == "/" && f.root {
		return `the jail can write "/"`
	}
	return ""
}
