package fence

import "sandboxd/internal/fence/repos"

// Changes says what a command did that no mount could keep it from, and that the
// host's git or another tool would act on: in words for a person. It is asked once
// the command's processes are gone.
func (r Result) Changes() []string {
	if !r.guarded {
		return nil
	}
	return append(repos.Changes(r.before, r.before.Again()), r.path.changes(r.first)...)
}
