package fence

import (
	"fmt"

	"sandboxd/internal/fence/repos"
)

// Changes says what a command did that no mount could keep it from, and that the
// host's git or another tool would act on: in words for a person. It is asked once
// the command's processes are gone.
func (r Result) Changes() []string {
	if !r.guarded {
		return nil
	}
	out := append(repos.Changes(r.before, r.before.Again()), r.path.changes(r.first)...)
	for _, g := range r.missing {
		if exists(g.Path) {
			out = append(out, fmt.Sprintf("the command made %q, which was not there: %s; remove it if you do not trust the command", g.Path, g.Why))
		}
	}
	return out
}
