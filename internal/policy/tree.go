package policy

import (
	"slices"
	"strings"
)

// tree answers which of a set of paths lie above or below a path, by components.
// Its keys are paths with NUL for each slash: NUL is in no path and is the lowest
// byte, so in the order of the keys everything below a path follows it at once.
type tree struct {
	all []node // sorted
	top []node // those of all that have none of all above them, sorted
}

type node struct {
	key   string
	index int // in the list the tree was made of
}

func newTree(paths []string) *tree {
	t := &tree{all: make([]node, len(paths))}
	for i, p := range paths {
		t.all[i] = node{treeKey(p), i}
	}
	slices.SortFunc(t.all, func(a, b node) int {
		if c := strings.Compare(a.key, b.key); c != 0 {
			return c
		}
		return a.index - b.index
	})
	for _, n := range t.all {
		if len(t.top) == 0 || !covers(t.top[len(t.top)-1].key, n.key) {
			t.top = append(t.top, n)
		}
	}
	return t
}

// treeKey of "/" is empty, so that it covers everything.
func treeKey(path string) string {
	path = clean(path)
	if path == "/" {
		return ""
	}
	b := []byte(path)
	for i, c := range b {
		if c == '/' {
			b[i] = 0
		}
	}
	return string(b)
}

// covers says whether path is dir or below it.
func covers(dir, path string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == 0)
}

func (n node) compare(key string) int { return strings.Compare(n.key, key) }

// above gives the index of a path whose key is key or above it. Only the uppermost
// matter, and of those only the one that sorts last before key can be above it.
func (t *tree) above(key string) (int, bool) {
	at, exact := slices.BinarySearchFunc(t.top, key, node.compare)
	if exact {
		return t.top[at].index, true
	}
	if at > 0 && covers(t.top[at-1].key, key) {
		return t.top[at-1].index, true
	}
	return 0, false
}

// below gives the index of a path whose key is key or below it.
func (t *tree) below(key string) (int, bool) {
	at, _ := slices.BinarySearchFunc(t.all, key, node.compare)
	if at < len(t.all) && covers(key, t.all[at].key) {
		return t.all[at].index, true
	}
	return 0, false
}
