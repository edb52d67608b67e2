// Package env constructs the environment of a command: nothing is inherited, only
// names that the policy allows come through, and PATH is rebuilt so that no
// directory on it can be written from inside the jail.
//
// It does no I/O: what the host looks like enters as a layout, for which Dirs
// names the paths to look at beforehand. It does not judge values: an allowed
// name that loads code into the command (LD_PRELOAD, BASH_ENV, NODE_OPTIONS,
// GODEBUG) reaches it as the broker sent it, and one file inside a directory on
// PATH that is writable by itself is not looked for. The result is for the
// command's execve alone; nothing that runs before it may be given these names.
package env

import (
	"slices"
	"strings"

	"sandboxd/internal/host"
)

// The names that are more than passed on.
const (
	ScratchName = "SANDBOXD_SCRATCH_DIR"
	DefaultPath = "/usr/local/bin:/usr/bin:/bin"
	DefaultLang = "C.UTF-8"

	// NoPath is PATH when no directory is left for it. An empty PATH would mean
	// the current directory, and shells fill in a list of their own for an unset
	// one; this is never a directory, and no jail can make it one.
	NoPath = "/dev/null"
)

// Input is everything that decides an environment.
type Input struct {
	Allow      []string          // names of the policy's env_allow
	Request    map[string]string // what the broker sent
	HelperPath string            // PATH that the helper itself inherited, "" if unset

	Layout host.Layout // must hold what Dirs names; what it does not hold is not used

	// Writable are the physical paths that the jail can write: writable roots,
	// read-write mounts, a host-path scratch, /tmp where it is the tmpfs, the
	// macOS user directories. Scratch counts without being named here.
	Writable []string
	Scratch  string // the scratch as the jail sees it, "" if there is none
	Tmpfs    bool   // Scratch is a fresh tmpfs: what the host has below it is gone

	// View says what the jail may do at a physical path. Nil is no jail at all:
	// everything is readable, and what the host's layout says is there is there.
	View func(path string) (readable, writable bool)
}

// Result is a constructed environment.
type Result struct {
	Env     []string  // NAME=VALUE, sorted, each name once
	Path    []string  // directories for the look-up of argv[0], also if PATH is not allowed
	Dropped []Dropped // what was asked for and left out, for explanations; no values
}

// Dropped is a variable or a directory of PATH that was left out.
type Dropped struct {
	Name   string // of the variable
	Dir    string // of PATH: the directory as spelled
	Reason string
}

// Build constructs the environment. The same input gives the same result.
func Build(in Input) Result {
	b := builder{in: in, allow: map[string]bool{}, env: map[string]string{}}
	for _, name := range in.Allow {
		b.allow[name] = true
	}
	b.request()
	b.path()
	b.scratch()
	b.lang()
	out := make([]string, 0, len(b.env))
	for name, value := range b.env {
		out = append(out, name+"="+value)
	}
	slices.Sort(out)
	return Result{Env: out, Path: b.dirs, Dropped: b.dropped}
}

type builder struct {
	in      Input
	allow   map[string]bool
	env     map[string]string
	dirs    []string
	dropped []Dropped
}

// request takes over what is allowed and can be handed to execve(2).
func (b *builder) request() {
	for _, name := range sortedKeys(b.in.Request) {
		value := b.in.Request[name]
		switch {
		case !b.allow[name] || name == "" || strings.ContainsAny(name, "=\x00"):
			b.drop(Dropped{Name: name, Reason: "its name is not in env_allow"})
		case strings.Contains(value, "\x00"):
			b.drop(Dropped{Name: name, Reason: "its value holds a NUL, where the kernel would cut it"})
		default:
			b.env[name] = value
		}
	}
}

// scratch sets the two names that lead to the scratch.
func (b *builder) scratch() {
	delete(b.env, ScratchName)
	if b.in.Scratch == "" {
		return
	}
	if b.allow[ScratchName] {
		b.env[ScratchName] = b.in.Scratch
	}
	if !b.allow["TMPDIR"] {
		return
	}
	dir := b.usable(b.env["TMPDIR"])
	if dir == "" {
		dir = b.in.Scratch
	}
	b.env["TMPDIR"] = dir
}

// usable gives the spelling by which the command can make files in dir, or "".
func (b *builder) usable(dir string) string {
	if reason(dir) != "" {
		return ""
	}
	res := b.in.Layout.Resolve(dir)
	switch {
	case dir == b.in.Scratch:
		return dir
	case res.Err != nil || res.Node.Kind != host.Dir || b.emptied(res.Path):
		return ""
	case b.in.View == nil:
		return dir
	}
	if _, writable := b.in.View(res.Path); !writable {
		return ""
	}
	// The jail need not have the links on the way there.
	if len(res.Links) > 0 {
		return res.Path
	}
	return dir
}

// emptied says whether the tmpfs hides the host's directory at path. What is bound
// below the tmpfs survives it.
func (b *builder) emptied(path string) bool {
	if !b.in.Tmpfs || path == b.in.Scratch || !host.Beneath(path, b.in.Scratch) {
		return false
	}
	return !slices.ContainsFunc(b.in.Writable, func(w string) bool {
		return w != b.in.Scratch && host.Beneath(w, b.in.Scratch) && host.Beneath(path, w)
	})
}

// lang gives tools a UTF-8 locale where nothing names one. POSIX (XBD 8.2) takes
// an empty value for none.
func (b *builder) lang() {
	if b.allow["LANG"] && b.env["LANG"] == "" && b.env["LC_ALL"] == "" && b.env["LC_CTYPE"] == "" {
		b.env["LANG"] = DefaultLang
	}
}

func (b *builder) drop(d Dropped) { b.dropped = append(b.dropped, d) }

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
