package protocol

import (
	"slices"
	"strings"
)

// Tag is one name of the vocabulary. Its source is tags.toml.
type Tag struct {
	ID        string
	Feature   bool     // can appear in hello.features
	Applied   bool     // can appear in exec_exit.enforcement as a layer in force
	Skip      bool     // can appear there behind "skip:"
	Platforms []string // "linux", "darwin", "other"
	Meaning   string
}

// Tags gives the whole vocabulary in its documented order.
func Tags() []Tag { return slices.Clone(vocabulary[:]) }

// Layer reads an entry of exec_exit.enforcement: the layer's name, and whether the
// entry says that it was skipped. A layer in force ends at the first ':' or '=', a
// skipped one at the first ':'.
func Layer(entry string) (tag string, skipped bool) {
	if rest, ok := strings.CutPrefix(entry, "skip:"); ok {
		tag, _, _ = strings.Cut(rest, ":")
		return tag, true
	}
	if i := strings.IndexAny(entry, ":="); i >= 0 {
		return entry[:i], false
	}
	return entry, false
}
