package repos

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// State is what of a directory's repositories no mount can keep: taken before and
// after a command.
type State struct {
	top      string
	repos    map[string]place             // by the path of .git, or of a bare repository
	execs    map[string][]byte            // by git directory: the commands of a rebase in progress
	files    map[string][sha256.Size]byte // small files by which git goes on: see told
	links    map[string]bool              // .git in places that the index of top has for repositories
	shut     map[string]error             // directories that could not be looked at, or not whole
	found    []Repo                       // the nearest first
	caches   []Places
	searched int // directories; 0 for top alone
	complete bool
	unread   bool // the index of top
	looks    int  // entries of git directories that may still be read
	lists    int  // bytes of rebases' lists that may still be read
	names    int  // bytes of paths and the like that may still be kept
}

type place struct {
	repo  Repo
	info  os.FileInfo
	head  bool
	cache bool
}

// Look takes the state of a directory: its own repository, those that its index
// names, and with most above 0 those in that many directories below it. caches are
// the places of what a tool keeps that it runs or obeys.
func Look(top string, most int, caches ...Places) State {
	s := State{top: top, repos: map[string]place{}, execs: map[string][]byte{}, files: map[string][sha256.Size]byte{}, links: map[string]bool{}, shut: map[string]error{}, caches: caches, searched: most, looks: maxLooks, lists: maxLists, names: maxNames}
	found, shut, complete := Find(top, max(most, 1))
	s.note(shut)
	s.complete = complete || most == 0
	for _, r := range found {
		s.add(r, false)
	}
	s.gitlinks()
	for _, pattern := range caches {
		dirs, shut := pattern.Matches()
		s.note(shut)
		for _, dir := range dirs {
			s.add(Repo{filepath.Dir(dir), dir, Dir}, true)
		}
	}
	return s
}

// Again takes the state of the same places.
func (s State) Again() State { return Look(s.top, s.searched, s.caches...) }

// add notes one repository with what is in progress there.
func (s *State) add(r Repo, cache bool) {
	info, err := os.Lstat(r.Git)
	if err != nil || cache && !info.IsDir() {
		return
	}
	if _, known := s.repos[r.Git]; !known && !cache {
		s.found = append(s.found, r)
	}
	s.repos[r.Git] = place{r, info, r.Kind != Dir || hasHead(r.Git), cache}
	dir := r.Git
	if r.Kind == File {
		dir = Pointed(r.Git)
	}
	if dir == "" || r.Kind == Link || cache {
		return
	}
	common := Common(dir)
	s.goesOn(dir, common)
	if common != dir {
		s.goesOn(common, common)
	}
	for _, tree := range s.matches(common, "worktrees/*") {
		s.goesOn(tree, common)
	}
}

// goesOn notes what is in progress in one git directory, and what leads it elsewhere.
func (s *State) goesOn(dir, common string) {
	if !s.shuts(dir) {
		s.rebase(dir)
		s.told(dir, common)
	}
}

// matches finds a pattern in a git directory.
func (s *State) matches(dir, pattern string) []string {
	paths, shut := Places{dir, pattern}.matches(&s.looks)
	if s.looks >= 0 { // which is said of all of them
		s.note(shut)
	}
	return paths
}

// note notes what could not be looked at.
func (s *State) note(shut []Shut) {
	for _, one := range shut {
		if _, known := s.shut[one.Dir]; !known && s.keep(len(one.Dir)) {
			s.shut[one.Dir] = one.Err
		}
	}
}

// Shut lists the directories that could not be looked at, or not whole.
func (s State) Shut() (list []Shut) {
	for _, dir := range slices.Sorted(maps.Keys(s.shut)) {
		list = append(list, Shut{dir, s.shut[dir]})
	}
	return list
}

// Found lists the repositories, the nearest first; complete is false where more
// directories are there than were searched.
func (s State) Found() (found []Repo, complete bool) { return s.found, s.complete }

// gitlinks looks at what the index of top's repository names.
func (s *State) gitlinks() {
	own, ok := s.repos[filepath.Join(s.top, ".git")]
	dir := own.repo.Git
	switch {
	case !ok || own.repo.Kind == Link:
		return
	case own.repo.Kind == File:
		dir = Pointed(dir)
	}
	paths, ok := Gitlinks(dir)
	s.unread = !ok
	for _, path := range paths {
		if !filepath.IsLocal(path) {
			continue
		}
		top := filepath.Join(s.top, path)
		at := filepath.Join(top, ".git")
		s.links[at] = true
		if info, err := os.Lstat(at); err == nil {
			s.add(Repo{top, at, kindOf(info.Mode())}, false)
		}
	}
}

// maxTodo bounds the list of a rebase that is read, in bytes, and maxLists all of them
// together: what they run is kept.
const (
	maxTodo  = 4 << 20
	maxLists = 4 * maxTodo
)

// rebase reads the commands that `git rebase --continue` will run. A list that
// cannot be read counts as one.
func (s *State) rebase(dir string) {
	if s.looks--; s.looks < 0 {
		return
	}
	at := filepath.Join(dir, "rebase-merge", "git-rebase-todo")
	text, err := ReadSmall(at, int64(min(maxTodo, s.lists)))
	s.lists -= len(text)
	if err != nil {
		if what := err.Error(); exists(at) && s.keep(len(dir)+len(what)) {
			s.execs[dir] = []byte(what)
		}
		return
	}
	var found []byte
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxTodo+1)
	for lines.Scan() {
		line := strings.TrimLeft(lines.Text(), " \t\r")
		word, _, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		if word == "exec" || word == "x" {
			found = append(append(found, line...), '\n')
		}
	}
	if found != nil && s.keep(len(dir)) {
		s.execs[dir] = found
	}
}

// maxNames bounds what is kept beside the lists, paths above all, in bytes.
const maxNames = 8 << 20

// keep takes n bytes of that. Where there are no more of them, no more is looked at.
func (s *State) keep(n int) bool {
	if s.names -= n; s.names < 0 {
		s.looks = -1
	}
	return s.names >= 0
}

// exists says whether something is there, or may be.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !Absent(err)
}

// hasHead says whether git takes a directory for its own, or would if it could be searched.
func hasHead(dir string) bool { return exists(filepath.Join(dir, "HEAD")) }

// shuts notes a git directory that cannot be searched: then nothing more is said of it.
func (s *State) shuts(dir string) bool {
	err := Usable(dir, nil)
	if err != nil {
		s.note([]Shut{{dir, err}})
	}
	return err != nil
}
