package fence

import (
	"fmt"
	"path/filepath"
	"slices"
)

// guardHome guards what of the home directory's list a command could change: by its name,
// where a part of HOME is granted, or where the name leads, as in a workspace that holds
// the user's settings for links to them.
func (b *builder) guardHome(add adder) {
	if b.reach.home == "" {
		return
	}
	for _, g := range HomeGuarded {
		at := filepath.Join(b.reach.home, g.Name)
		real := led(at)
		b.sayGranted(real, g.Why)
		switch {
		case slices.Contains(b.granted(), real): // it is the workspace itself, ~/.config/fish
		case b.grantedAbove(at):
			b.addAll(add, b.reach.home, []Guarded{g})
		case b.grantedAbove(real):
			g.Name = filepath.Base(real)
			b.addAll(add, filepath.Dir(real), []Guarded{g})
		}
	}
	for _, file := range b.files {
		if real := led(file); b.grantedAbove(real) {
			add(real, "is your git configuration")
		}
	}
}

// sayGranted says that one of the list, or a part of it, is what the command is to write, as
// in a workspace ~/.config/fish. What the user opened by name was meant.
func (b *builder) sayGranted(real, why string) {
	for _, root := range b.granted() {
		if within(root, real) && !slices.Contains(b.in.Open, root) {
			b.out.Notes = append(b.out.Notes, fmt.Sprintf("guard: the command may write all of %q, which is not guarded, and %s; look at what it wrote there", root, why))
			return
		}
	}
}

// led is where a name leads; of one that is missing, where its directory does.
func led(path string) string {
	if real, err := realPath(path); err == nil {
		return real
	}
	if dir, err := realPath(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}
