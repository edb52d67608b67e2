package roots

import (
	"slices"
	"sync"

	"sandboxd/internal/host"
)

// maxRemembered bounds each kind of entry of a Memory.
const maxRemembered = 8192

// Memory is what the policies that this process has executed let their commands
// write. The zero value is empty and ready; it is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	what    placeSet
	version uint64 // how often it learnt something
}

// Add remembers the places that the surveyed policy lets a command write. Call it
// before the command starts: what a command of an execution that failed half-way
// did counts too.
func (m *Memory) Add(r *Reached) {
	if m == nil || r == nil || r.places == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.what.union(&r.places.own) {
		m.version++
	}
	if len(m.what.ids) > maxRemembered || len(m.what.trees) > maxRemembered {
		// Forgetting would open the fence; so everything counts from here on.
		m.what = placeSet{all: true}
		m.version++
	}
}

// placeSet is a set of directory trees, by inode and by place within a file system.
type placeSet struct {
	ids   map[host.ID]bool
	trees map[tree]bool
	all   bool // "/"
}

// Tree is the place of one path within its file system, for comparison.
type Tree struct{ t tree }

// Overlaps says whether a mount shows the tree, a part of it or what holds it.
func (t Tree) Overlaps(m Mount) bool {
	return t.t.dev == m.Dev && (host.Beneath(t.t.path, m.Root) || host.Beneath(m.Root, t.t.path))
}

// Shows says whether a mount shows exactly the tree.
func (t Tree) Shows(m Mount) bool { return t.t == tree{m.Dev, m.Root} }

// HadMount says whether this process saw the mount when it surveyed the host: the
// same file system's directory at the same point.
func (r *Reached) HadMount(m Mount) bool {
	if r.places == nil {
		return false
	}
	if r.places.seen == nil {
		r.places.seen = make(map[[3]string]bool, len(r.places.mounts))
		for _, o := range r.places.mounts {
			r.places.seen[[3]string{o.Dev, o.Root, o.Point}] = true
		}
	}
	return r.places.seen[[3]string{m.Dev, m.Root, m.Point}]
}

// Tree places what the survey met at a physical path; false where it is unknown.
func (r *Reached) Tree(physical string) (Tree, bool) {
	t, ok := r.treeAt(physical)
	return Tree{t}, ok
}

// treeAt places a physical path that need not exist.
func (r *Reached) treeAt(physical string) (tree, bool) {
	if r.places == nil {
		return tree{}, false
	}
	dir := physical
	for r.layout[dir].Kind != host.Dir {
		if dir == "/" {
			return tree{}, false
		}
		dir = host.Parent(dir)
	}
	if dir != physical { // a single file can be a mount point as well
		for _, m := range slices.Backward(r.places.mounts) {
			if m.Point == physical {
				return tree{m.Dev, m.Root}, true
			}
		}
	}
	t, ok := r.places.treeOf(dir)
	t.path = rebase(physical, dir, t.path)
	return t, ok
}

// tree is a directory by where it is within its file system, which stays the same
// whatever a bind mount calls it.
type tree struct{ dev, path string }

func (s *placeSet) addID(id host.ID) (new bool) {
	if s.ids == nil {
		s.ids = map[host.ID]bool{}
	}
	new = !s.ids[id]
	s.ids[id] = true
	return new
}

func (s *placeSet) addTree(t tree) (new bool) {
	if s.trees == nil {
		s.trees = map[tree]bool{}
	}
	new = !s.trees[t]
	s.trees[t] = true
	return new
}

// union says whether there was anything new in o.
func (s *placeSet) union(o *placeSet) (new bool) {
	new = o.all && !s.all
	s.all = s.all || o.all
	for id := range o.ids {
		new = s.addID(id) || new
	}
	for t := range o.trees {
		new = s.addTree(t) || new
	}
	return new
}

// holds says whether t lies in one of the trees.
func (s *placeSet) holds(t tree) bool {
	if len(s.trees) == 0 {
		return false
	}
	for {
		if s.trees[t] {
			return true
		}
		if t.path == "/" {
			return false
		}
		t.path = host.Parent(t.path)
	}
}

// places is the judgement of one survey: which directories a command may write.
type places struct {
	r      *Reached
	set    placeSet
	own    placeSet // the policy's own part, for Memory
	mounts []Mount
	seen   map[[3]string]bool // of mounts, by what HadMount compares
}

func newPlaces(r *Reached, mounts []Mount) (*places, error) {
	if mounts == nil {
		var err error
		if mounts, err = ownMounts(); err != nil {
			return nil, err
		}
	}
	return &places{r: r, mounts: mounts}, nil
}

// merge takes over what earlier policies let a command write, and gives the version of
// what it took.
func (p *places) merge(m *Memory) uint64 {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p.set.union(&m.what)
	return m.version
}

// add counts a physical path, with all beneath it, as writable, in each of the
// sets; "" is nothing.
func (p *places) add(at string, sets ...*placeSet) {
	node, ok := p.r.layout[at]
	if !ok || node.Kind != host.Dir {
		return // nothing but a directory can hold a link
	}
	var trees []tree
	if t, ok := p.treeOf(at); ok {
		trees = append(trees, t)
	}
	for _, m := range p.mounts {
		// A bind takes the mounts beneath along: what is mounted there is writable
		// under its other names as well.
		if m.Point != at && host.Beneath(m.Point, at) {
			trees = append(trees, tree{m.Dev, m.Root})
		}
	}
	for _, set := range sets {
		if at == "/" {
			set.all = true
			continue
		}
		set.addID(node.ID)
		for _, t := range trees {
			set.addTree(t)
		}
	}
}

// addUnseen counts what could not be looked at, by the mount table alone.
func (p *places) addUnseen(at string, set *placeSet) {
	if t, ok := p.r.treeAt(at); ok {
		set.addTree(t)
	}
	for _, m := range p.mounts {
		if host.Beneath(m.Point, at) {
			set.addTree(tree{m.Dev, m.Root})
		}
	}
}

// writable says whether a command could have made an entry in the directory dir.
func (p *places) writable(dir string) bool {
	if p.set.all {
		// Everything was writable but for the modes: a command has this caller's uid.
		return p.r.mayWrite(dir)
	}
	for at := dir; ; at = host.Parent(at) {
		if p.set.ids[p.r.layout[at].ID] {
			return true
		}
		if at == "/" {
			break
		}
	}
	t, ok := p.treeOf(dir)
	return ok && p.set.holds(t)
}

// treeOf finds the place of a directory within its file system.
func (p *places) treeOf(dir string) (tree, bool) {
	m, ok := mountAt(p.mounts, dir, p.r.mountID(dir))
	if !ok {
		return tree{}, false
	}
	return tree{m.Dev, rebase(dir, m.Point, m.Root)}, true
}

// rebase replaces the prefix from of path by to.
func rebase(path, from, to string) string {
	rest := path
	if from != "/" {
		rest = path[len(from):]
	}
	switch {
	case rest == "" || rest == "/":
		return to
	case to == "/":
		return rest
	}
	return to + rest
}
