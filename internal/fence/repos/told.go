package repos

import (
	"crypto/sha256"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// ownStrategies are those that git has itself; any other one is a program, and one with
// a slash a file of the work tree (git-merge(1), -s).
var ownStrategies = []string{"", "ort", "recursive", "resolve", "octopus", "ours", "subtree"}

// strategyOf finds the key in the options of a cherry-pick in progress, which have git's
// syntax of configuration: the longer one names no program.
var strategyOf = sync.OnceValue(func() *regexp.Regexp { // not before: this program starts often
	return regexp.MustCompile(`(?i)strategy([^-a-z0-9]|$)`)
})

// maxTold bounds the small files that are read, in bytes of each. Kept is a digest: very
// many cost a command little.
const maxTold = 16 << 10

// ownCommon is what git writes: the repository that has the work tree's directory.
const ownCommon = "../.."

// told notes what in a git directory names a program or another repository by which
// git goes on: the strategy of what is in progress, where a linked work tree's
// configuration is, and remotes that are files (see gitrepository-layout(5)), which count
// where the configuration has none of that name.
func (s *State) told(dir, common string) {
	note := func(at string, counts func(text string) bool) {
		if !exists(at) {
			return
		}
		if s.looks--; s.looks < 0 {
			return
		}
		text, err := ReadSmall(at, maxTold)
		if err != nil {
			text = []byte(err.Error())
		}
		if sum := sha256.Sum256(text); (err != nil || counts(string(text))) && s.keep(len(at)+len(sum)) {
			s.files[at] = sum
		}
	}
	note(filepath.Join(dir, "rebase-merge", "strategy"), func(text string) bool {
		return !slices.Contains(ownStrategies, strings.TrimSpace(text))
	})
	note(filepath.Join(dir, "sequencer", "opts"), func(text string) bool { return strategyOf().MatchString(text) })
	if filepath.Base(filepath.Dir(dir)) == "worktrees" {
		// Of a work tree that the host adds while a command runs, which no guard knows.
		note(filepath.Join(dir, "commondir"), func(text string) bool { return strings.TrimSpace(text) != ownCommon })
		note(filepath.Join(dir, "config.worktree"), func(text string) bool { return text != "" }) // no placeholder
	}
	if dir != common {
		return
	}
	for _, pattern := range []string{"remotes/*", "branches/*"} {
		for _, at := range s.matches(common, pattern) {
			note(at, func(string) bool { return true })
		}
	}
}

// describeFile says what a file that a command wrote does.
func describeFile(at string) string {
	switch filepath.Base(at) {
	case "commondir", "config.worktree":
		return "the command wrote " + strconv.Quote(at) + ", by which git obeys another configuration, or other hooks, in that work tree; look at it before you use git there"
	}
	switch filepath.Base(filepath.Dir(at)) {
	case "remotes", "branches":
		return "the command wrote " + strconv.Quote(at) + ", by which git fetches from another repository and pushes to it, whose hooks then run; remove it if you do not know it"
	}
	return "the command wrote " + strconv.Quote(at) + ", by which what is in progress there goes on with a program as its merge strategy; abort it, or remove that file"
}
