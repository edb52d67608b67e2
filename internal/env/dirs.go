package env

import (
	"strings"

	"sandboxd/internal/host"
)

// maxDirs bounds the directories of one PATH that are looked at, so that a request
// cannot make the helper walk a million of them.
const maxDirs = 1024

// maxList bounds the bytes of one PATH that are looked at: what a single string of an
// execve may have (MAX_ARG_STRLEN of execve(2)).
const maxList = 131072

// maxPath is the length that no path of the kernel exceeds, in bytes (PATH_MAX without
// its NUL). A longer one cannot exist, and a look at each of its million parts would
// keep the helper busy for hours.
const maxPath = 4095

// Dirs lists the paths whose layout Build looks at: the directories of the
// requested PATH, of the helper's own and of the default, and TMPDIR. A path with
// ".." comes as what it says without following links, with the directory in front
// of each ".." beside it. One that is missing, or that a planted link leads to,
// is left out of PATH and is no reason to refuse the execution.
func Dirs(request map[string]string, helperPath string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(path string) {
		if path != "" && !seen[path] {
			seen[path] = true
			out = append(out, path)
		}
	}
	for _, c := range candidates(request["PATH"], helperPath) {
		survey(c.spelled, add)
	}
	survey(request["TMPDIR"], add)
	return out
}

// survey adds what must be looked at to resolve path.
func survey(path string, add func(string)) {
	if reason(path) != "" {
		return
	}
	clean := "/"
	for name := range strings.SplitSeq(path, "/") {
		switch name {
		case "", ".":
		case "..":
			add(clean)
			clean = host.Parent(clean)
		default:
			clean = host.Join(clean, name)
		}
	}
	add(clean)
}

// reason says why a directory cannot be used whatever the host has there.
func reason(dir string) string {
	switch {
	case !strings.HasPrefix(dir, "/"):
		return "it is not absolute"
	case strings.Contains(dir, "\x00"):
		return "it holds a NUL"
	case len(dir) > maxPath:
		return "it is longer than a path can be"
	}
	return ""
}

// candidate is one directory of a PATH.
type candidate struct {
	spelled string
	excess  bool // beyond maxDirs or maxList
}

// candidates gives the directories in the order of precedence: the request's, as
// only it can name a bundled toolchain, the helper's, the default.
func candidates(requested, helper string) []candidate {
	var out []candidate
	for _, list := range []string{requested, helper, DefaultPath} {
		n, size := 0, 0
		for dir := range strings.SplitSeq(list, ":") {
			if dir == "" {
				continue
			}
			n, size = n+1, size+len(dir)+1
			excess := n > maxDirs || size > maxList
			out = append(out, candidate{spelled: dir, excess: excess})
			if excess {
				break
			}
		}
	}
	return out
}
