package fence

import (
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
