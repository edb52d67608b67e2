package fence

import (
	"os"
	"path/filepath"
)

// State is what of a workspace's repository no mount can keep: taken before and
// after a command.
type State struct {
	Bare bool // the workspace itself looks like a bare repository
	Git  bool // there is a .git
	Head bool // .git, where it is a directory, has a HEAD
}

// Look takes the state of a workspace.
func Look(workspace string) State {
	at := func(name string) bool { return exists(filepath.Join(workspace, name)) }
	info, err := os.Lstat(filepath.Join(workspace, ".git"))
	return State{
		Bare: at("HEAD") && at("objects") && at("refs"), // what git asks of a directory
		Git:  err == nil,
		Head: err == nil && (!info.IsDir() || at(".git/HEAD")),
	}
}

// Changes says what a command did that the host's git would act on, in words for a
// person.
func Changes(workspace string, before, after State) []string {
	var out []string
	if after.Bare && !before.Bare {
		out = append(out, "the command made a bare repository of "+workspace+" itself, whose configuration and hooks are the command's; look at it before you use git there, and set safe.bareRepository=explicit")
	}
	if before.Git && before.Head && !after.Head {
		out = append(out, "the command removed .git/HEAD in "+workspace+", so that git no longer takes .git for the repository")
	}
	if after.Git && !before.Git {
		out = append(out, "the command made the repository in "+workspace+", so its configuration and hooks are the command's; look at them before you use git there")
	}
	return out
}
