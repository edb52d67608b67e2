package fence

import (
	"fmt"
	"os"
	"slices"
	"time"

	"sandboxd/internal/fence/repos"
	"sandboxd/protocol"
)

// Input is what decides a preset.
type Input struct {
	Workspace string  // absolute, as the user spells it
	Env       Environ // of the caller
	Guard     bool
	Offline   bool // no network: what is cached must do
	// Open are paths that the user grants for writing by name, Hidden those that the
	// user protects: no guard contradicts them.
	Open, Hidden []string
	// Write are those of Open that a command may write, Mounted those that the policy
	// mounts: nothing in a mount can be protected.
	Write, Mounted []string
	Scratch        string // as in the policy; "" is the preset's own
	Self           string // the program that makes the preset: guarded where a command could write it
}

// Result is a preset's policy, without the user's additions and limits.
type Result struct {
	Policy protocol.Policy
	Env    map[string]string // variables that the preset sets for the command
	Guards []Guard
	Git    string // the program, "" for none that no command could have written
	// Own are the configuration files of the repository that the workspace is in.
	Own    []string
	Notes  []string // what was left out and why, for a person
	Absent []string // candidates that do not exist: nothing was lost

	// For Changes: what was there.
	guarded bool
	before  repos.State
	path    search
	first   map[string]string // of path
	missing []Guard           // what no placeholder could keep from being made
}

// Fence is the write fence: everything readable, the network as it is, writes
// bounded to the workspace, the temporary directories and the caches there are.
// The error is a workspace whose guard cannot be built.
func Fence(in Input) (Result, error) {
	tmp := []string{"/tmp"}
	if dir, _ := in.Env("TMPDIR"); usable(dir) && dir != "/tmp" {
		tmp = append(tmp, dir)
	}
	b, err := newBuilder(in, tmp)
	if err != nil {
		return Result{}, err
	}
	p := &b.out.Policy
	p.Network.Mode = protocol.NetFull
	p.Scratch = protocol.ScratchTmpfs
	if in.Scratch != "" {
		p.Scratch = in.Scratch
	} else if real := b.physical("/tmp"); real != "" {
		p.Scratch = real
	}
	p.ReadableRoots = []string{"/"}
	b.writable(in.Workspace)
	for _, dir := range tmp[1:] {
		if real, _, why := b.reach.grant(dir, false); why == "" {
			b.writable(real)
		} else {
			b.note("TMPDIR", dir, why)
		}
	}
	for _, g := range b.caches {
		if g.Write {
			b.writable(g.Path)
		}
	}
	return b.finish()
}

// Workspace is the strict jail: a minimal view with the workspace writable, the
// caches there are read-only, new ones in the private scratch, no network.
func Workspace(in Input) (Result, error) {
	b, err := newBuilder(in, nil)
	if err != nil {
		return Result{}, err
	}
	p := &b.out.Policy
	p.Network.Mode = protocol.NetOff
	p.Scratch = protocol.ScratchTmpfs
	if in.Scratch != "" {
		p.Scratch = in.Scratch
	}
	b.writable(in.Workspace)
	for _, g := range b.caches {
		p.ReadableRoots = append(p.ReadableRoots, g.Path)
	}
	b.relocate()
	return b.finish()
}

type builder struct {
	in     Input
	reach  *reacher
	caches []Grant
	repo   repository
	git    git
	files  []string  // of the user's own git configuration
	user   []setting // what they say
	most   *bounds
	waited time.Duration
	closed []repos.Shut // what the guard could not look into, and made read-only
	beyond []string     // caches with more than is looked at
	failed error        // of what it could not make read-only
	out    Result
}

func newBuilder(in Input, tmp []string) (*builder, error) {
	for _, list := range []*[]string{&in.Open, &in.Hidden, &in.Write, &in.Mounted} {
		*list = spellings(*list)
	}
	b := &builder{in: in, most: newBounds()}
	b.out.Env = map[string]string{}
	if !usable(in.Workspace) {
		return nil, fmt.Errorf("cannot use the workspace %q: it is not an absolute path", in.Workspace)
	}
	found, notes := candidates(in.Env)
	b.out.Notes = notes
	home, _ := in.Env("HOME")
	if !usable(home) {
		b.out.Notes = append(b.out.Notes, "HOME is not set to an absolute path: only caches that a variable names are granted")
	}
	var paths, writable []string
	for _, c := range found {
		paths = append(paths, c.path)
		if !c.cache.ReadOnly {
			writable = append(writable, c.path)
		}
	}
	writable = append(append(writable, in.Workspace), tmp...)
	writable = append(writable, in.Open...)
	var err error
	if b.reach, err = reach(append(paths, tmp...), writable, home, in.Workspace); err != nil {
		return nil, err
	}
	for _, c := range found {
		b.judge(c)
	}
	path, _ := in.Env("PATH")
	b.out.Git = gitProgram(path, spellings(writable))
	b.git = git(b.out.Git)
	return b, b.findRepository(writable)
}

func (b *builder) judge(c candidate) {
	real, absent, why := b.reach.grant(c.path, c.cache.ReadOnly)
	switch {
	case absent && !c.direct:
		b.out.Absent = append(b.out.Absent, c.path)
	case why != "":
		b.note(c.cache.Tool+" cache", c.path, why)
	default:
		b.caches = append(b.caches, Grant{real, c.cache.Tool, c.cache.Execute, !c.cache.ReadOnly, c.cache.Repositories})
	}
}

func (b *builder) note(what, path, why string) {
	b.out.Notes = append(b.out.Notes, fmt.Sprintf("%s: not granted: %q: %s", what, path, why))
}

func (b *builder) physical(path string) string {
	if real, err := realPath(path); err == nil {
		return real
	}
	return ""
}

// writable adds a root, each one once.
func (b *builder) writable(path string) {
	if !slices.Contains(b.out.Policy.WritableRoots, path) {
		b.out.Policy.WritableRoots = append(b.out.Policy.WritableRoots, path)
	}
}

// relocate names the places in the scratch that a variable of the user's would
// otherwise keep on the host, where they are read-only.
func (b *builder) relocate() {
	dir := b.out.Policy.Scratch
	if dir == protocol.ScratchTmpfs {
		dir = ScratchDir
	}
	for _, c := range Caches {
		if c.Relocate != "" {
			b.out.Env[c.Relocate] = dir + "/" + c.Default
		}
	}
	for _, g := range b.caches {
		if g.Tool == "rustup" {
			b.out.Env["RUSTUP_HOME"] = g.Path
		}
		if g.Tool == "Go modules" && b.in.Offline && isDir(g.Path+"/cache/download") {
			// The modules that are there serve as a proxy, so that a build needs no network.
			b.out.Env["GOPROXY"] = "file://" + g.Path + "/cache/download"
		}
	}
}

// ScratchDir is where a private scratch is, as the jail sees it.
const ScratchDir = "/tmp"

// finish adds the repository's directories and the guard.
func (b *builder) finish() (Result, error) {
	for _, dir := range b.repo.grants {
		b.writable(dir)
	}
	b.out.Own = b.ownConfig()
	if b.in.Guard {
		if err := b.guard(); err != nil {
			return Result{}, err
		}
	}
	return b.out, nil
}

// spellings adds the physical form of each path.
func spellings(paths []string) []string {
	out := slices.Clone(paths)
	for _, path := range paths {
		if real, err := realPath(path); err == nil && real != path {
			out = append(out, real)
		}
	}
	return out
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
