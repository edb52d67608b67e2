package explain

import (
	"slices"
	"strings"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// Node is one place of the view where something begins.
type Node struct {
	Answer
	Link     string // text of a link that the jail has here, "" for anything else
	Children []*Node
}

// Tree gives the whole view: "/" with every place below it where another entry
// begins to decide.
func (s Scene) Tree() *Node {
	seen := map[string]bool{"/": true}
	paths := []string{}
	for _, op := range s.Plan.Ops {
		if !seen[op.Path] && op.Class != plan.Pin {
			seen[op.Path] = true
			paths = append(paths, op.Path)
		}
	}
	slices.Sort(paths) // parents come before what is below them
	root := &Node{Answer: s.At("/")}
	for _, path := range paths {
		n := s.node(path)
		if n == nil {
			continue
		}
		at := root
		for {
			i := slices.IndexFunc(at.Children, func(c *Node) bool { return host.Beneath(path, c.Path) })
			if i < 0 {
				break
			}
			at = at.Children[i]
		}
		at.Children = append(at.Children, n)
	}
	root.sort()
	return root
}

// node describes the place of an operation, or gives nil where a later one covers it.
func (s Scene) node(path string) *Node {
	last := plan.Op{}
	for _, op := range s.Plan.Ops {
		if op.Path == path && op.Class != plan.Seal && op.Class != plan.Pin {
			last = op
		}
	}
	if last.Class == plan.LinkTo {
		return &Node{Answer: Answer{Path: path, Class: plan.LinkTo, Kind: host.Link}, Link: last.Target}
	}
	a := s.At(path)
	if a.Region != path && a.Class != plan.Pin {
		return nil
	}
	a.Path = path
	return &Node{Answer: a}
}

func (n *Node) sort() {
	slices.SortFunc(n.Children, func(a, b *Node) int { return strings.Compare(a.Path, b.Path) })
	for _, c := range n.Children {
		c.sort()
	}
}
