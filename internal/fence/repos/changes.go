package repos

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// maxChanges bounds what is said of one kind: the list is read by a person.
const maxChanges = 5

// Changes says what a command did between two looks that git, started by the user,
// would act on: in words for a person, paths quoted.
func Changes(before, after State) []string {
	var made, caches, heads, rebases []string
	for _, at := range slices.Sorted(maps.Keys(after.repos)) {
		p := after.repos[at]
		old, known := before.repos[at]
		switch {
		case known && os.SameFile(old.info, p.info):
		case p.cache:
			caches = append(caches, fmt.Sprintf("the command made %q in a cache, which a tool runs or obeys; remove it if you do not trust the command", at))
		default:
			made = append(made, describe(p.repo, after))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(before.repos)) {
		if p, there := after.repos[at]; before.repos[at].head && there && !p.head {
			heads = append(heads, fmt.Sprintf("the command removed %q, so that git no longer takes %q for the repository", filepath.Join(at, "HEAD"), at))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(after.execs)) {
		if !bytes.Equal(before.execs[dir], after.execs[dir]) && !bytes.HasSuffix(before.execs[dir], after.execs[dir]) {
			rebases = append(rebases, fmt.Sprintf("the rebase in progress in %q runs commands that were not in its list before; read `git rebase --edit-todo` before you continue it", dir))
		}
	}
	var files []string
	for _, at := range slices.Sorted(maps.Keys(after.files)) {
		if before.files[at] != after.files[at] {
			files = append(files, describeFile(at))
		}
	}
	var shut []string
	for _, one := range after.Shut() {
		if _, known := before.shut[one.Dir]; !known {
			shut = append(shut, one.Describe())
		}
	}
	out := slices.Concat(bounded(made), bounded(heads), bounded(rebases), bounded(files), bounded(caches), bounded(shut))
	if after.unread && !before.unread {
		out = append(out, fmt.Sprintf("the index of the repository in %q cannot be read, so that what it names was not looked at", after.top))
	}
	if after.looks < 0 {
		out = append(out, fmt.Sprintf("the repositories in %q have more worktrees than are looked at (%d in all), so that a rebase that runs commands may be among the rest; look at them before you use git there", after.top, maxLooks))
	}
	if !after.complete {
		out = append(out, fmt.Sprintf("only %d directories of %q were searched for repositories that the command made", after.searched, after.top))
	}
	return out
}

// describe says what a new repository is.
func describe(r Repo, s State) string {
	switch {
	case r.Kind == Bare:
		return fmt.Sprintf("the command made a bare repository of %q itself, whose configuration and hooks are the command's; look at it before you use git there, and set safe.bareRepository=explicit", r.Top)
	case s.links[r.Git]:
		return fmt.Sprintf("the command made the repository in %q, whose configuration and hooks are the command's, and `git status` in %q obeys them; look at them first", r.Top, s.top)
	}
	return fmt.Sprintf("the command made the repository in %q, so its configuration and hooks are the command's; look at them before you use git there", r.Top)
}

func bounded(lines []string) []string {
	if n := len(lines) - maxChanges; n > 0 {
		return append(lines[:maxChanges:maxChanges], fmt.Sprintf("and %d more like the last one", n))
	}
	return lines
}
