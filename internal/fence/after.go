package fence

import (
	"fmt"
	"os"
	"path/filepath"

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
		switch _, err := os.Lstat(g.Path); {
		case os.IsPermission(err) && repos.Usable(filepath.Dir(g.Path), err) != nil:
			out = append(out, fmt.Sprintf("whether the command made %q is not known (%v), which was not there: %s; `chmod u+rwx` its directory and look at it before you use it", g.Path, repos.Cause(err), g.Why))
		case err == nil:
			out = append(out, fmt.Sprintf("the command made %q, which was not there: %s; remove it if you do not trust the command", g.Path, g.Why))
		}
	}
	return out
}
