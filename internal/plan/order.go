package plan

import (
	"slices"
	"strings"

	"sandboxd/internal/host"
)

// comparePaths orders paths so that a directory comes directly before everything
// beneath it: "/" sorts below every other byte.
func comparePaths(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		if a[i] == '/' {
			return -1
		}
		if b[i] == '/' {
			return 1
		}
		return int(a[i]) - int(b[i])
	}
	return len(a) - len(b)
}

// sorted gives a map's operations in path order.
func sorted(m map[string]Op) []Op {
	out := make([]Op, 0, len(m))
	for _, op := range m {
		out = append(out, op)
	}
	slices.SortFunc(out, func(a, b Op) int { return comparePaths(a.Path, b.Path) })
	return out
}

// ancestors calls f for path's parents, the nearest first, "/" last, until f
// says stop.
func ancestors(path string, f func(dir string) (goOn bool)) {
	for path != "/" {
		path = host.Parent(path)
		if !f(path) {
			return
		}
	}
}

// prefixes is a set of paths closed upwards: it answers "does anything lie at or
// beneath this path" in one look.
type prefixes map[string]bool

// add puts path and its parents in.
func (s prefixes) add(path string) {
	for !s[path] {
		s[path] = true
		path = host.Parent(path)
	}
}

// below says whether path contains a component name strictly above its last one.
func belowName(path, name string) bool {
	return strings.Contains(host.Parent(path)+"/", "/"+name+"/")
}

// between lists the directories strictly between top and path, outermost first;
// none where path is not beneath top.
func between(top, path string) []string {
	var out []string
	if path == top || !host.Beneath(path, top) {
		return nil
	}
	ancestors(path, func(dir string) bool {
		if dir == top || dir == "/" {
			return false
		}
		out = append(out, dir)
		return true
	})
	slices.Reverse(out)
	return out
}
