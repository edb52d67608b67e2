package explain

import (
	"strings"
	"testing"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
	"sandboxd/protocol"
)

func drawn(n *Node, depth int, b *strings.Builder) {
	name := n.Path
	if n.Link != "" {
		name += " -> " + n.Link
	}
	b.WriteString(strings.Repeat("  ", depth) + name + " " + n.Effect.String() + " " + n.Decider.List + "\n")
	for _, c := range n.Children {
		drawn(c, depth+1, b)
	}
}

func TestTree(t *testing.T) {
	s := sceneOf(t, facts(), func(p *protocol.Policy) {
		p.Protected = []string{"/home/ann/w/.git/hooks", "/home/ann/other"} // the other is outside every grant
		p.ReadableRoots = []string{"/home/ann/w/f"}
		p.Mounts = []protocol.Mount{{Path: "/etc/hosts", Access: protocol.ReadWrite, Required: true}}
	})
	var b strings.Builder
	drawn(s.Tree(), 0, &b)
	want := `/ none 
  /bin -> usr/bin none 
  /dev private dev
  /etc read-only base
    /etc/hosts read-write mounts
  /home/ann/w read-write writable_roots
    /home/ann/w/.git/hooks masked protected
    /home/ann/w/f read-only readable_roots
  /proc private proc
  /tmp private scratch
  /usr read-only base
  /var/lib read-only base
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}

// Whatever lies between the places of the tree is what the place above it says.
func TestTreeIsTheView(t *testing.T) {
	s := sceneOf(t, facts(), func(p *protocol.Policy) {
		p.Protected = []string{"/home/ann/w/.git"}
		p.ReadableRoots = []string{"/"}
	})
	root := s.Tree()
	for path := range s.Facts.Layout {
		at := root
		for again := true; again; {
			again = false
			for _, c := range at.Children {
				if host.Beneath(path, c.Path) {
					at, again = c, true
					break
				}
			}
		}
		if at.Class == plan.LinkTo {
			continue
		}
		if got := s.Plan.At(path).Effect; got != at.Effect {
			t.Errorf("%s is %s, and the tree says %s at %s", path, got, at.Effect, at.Path)
		}
	}
}
