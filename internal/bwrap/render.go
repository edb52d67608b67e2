// Package bwrap renders a plan as bubblewrap's arguments. It is pure: descriptors
// are numbers that the caller will make true, and nothing is looked up.
//
// It decides nothing about paths; what the plan leaves open stays open. It does
// not start bubblewrap, and the environment is not its business: the caller
// starts bubblewrap with an empty one, because /proc/1/environ shows it.
package bwrap

import (
	"fmt"
	"strconv"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// MaxArgs is how many arguments bubblewrap takes, those of --args included
// (MAX_ARGS in its bubblewrap.c).
const MaxArgs = 9000

// outside is the number of arguments that do not travel in Command.Args: the
// program's name, "--args", its number and "--".
const outside = 4

// Options is what the plan does not say.
type Options struct {
	FirstFD      int             // number of the first inherited descriptor
	Flags        map[string]bool // options this bubblewrap knows, without "--"
	NetFull      bool            // keep the host's network
	NestedUserns bool            // leave user namespaces to the command
	Exec         []string        // argv of stage 2
}

// Kind says what an inherited descriptor is.
type Kind uint8

// Kinds of inherited descriptor.
const (
	Bind Kind = iota + 1 // O_PATH descriptor of Path, which must be ID
	Data                 // a readable descriptor with Content, at its start
)

// Inherit is one descriptor that bubblewrap must get. It closes each, so every
// one is a duplicate of its own; the n-th has the number FirstFD+n.
type Inherit struct {
	Kind    Kind
	Path    string
	ID      host.ID
	Content string
}

// Command is what bubblewrap is started with:
// bwrap --args FD -- Exec..., Args separated by NUL on FD.
type Command struct {
	Args    []string
	Exec    []string
	Inherit []Inherit
	Mounts  []Mount     // what these arguments mount, in their order
	Dropped Dropped     // what they take away
	Skips   []plan.Skip // what this bubblewrap lacks
}

// Render turns a plan into arguments. It fails where bubblewrap could not take
// them all.
func Render(p plan.Plan, o Options) (Command, error) {
	r := renderer{o: o, lacks: map[string]bool{}, seen: map[string]plan.Class{"/": plan.RootTmpfs}, made: map[string]bool{}, late: map[string]bool{}}
	r.namespaces()
	r.operations(p.Ops)
	c := Command{Args: r.args, Exec: o.Exec, Inherit: r.inherit, Mounts: mounts(p.Ops), Dropped: r.dropped, Skips: r.skips}
	if n := len(c.Args) + len(c.Exec) + outside; n > MaxArgs {
		// Without explicit modes the parents are 0700 and the caller's own,
		// which is as good; so they are the first to go.
		c.Args = r.withoutDirs()
		if n := len(c.Args) + len(c.Exec) + outside; n > MaxArgs {
			return Command{}, fmt.Errorf("cannot start bubblewrap: the policy needs %d arguments and it takes %d; name fewer paths, for instance a common parent", n, MaxArgs)
		}
	}
	return c, nil
}

// renderer collects arguments.
type renderer struct {
	o       Options
	args    []string
	dirs    [][2]int // [from, to) of each "--perms 0755 --dir" in args
	inherit []Inherit
	dropped Dropped
	skips   []plan.Skip
	lacks   map[string]bool

	seen map[string]plan.Class // operations so far
	made map[string]bool       // directories made by --dir
	late map[string]bool       // places that something is mounted below afterwards
}

func (r *renderer) add(args ...string) { r.args = append(r.args, args...) }

// namespaces asks for the namespaces and drops what must not be kept. A root
// caller keeps every capability unless all are dropped, and could unmount a mask.
func (r *renderer) namespaces() {
	r.add("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
	if r.has("unshare-cgroup", "bwrap", "the cgroup namespace is the host's") {
		r.add("--unshare-cgroup")
	}
	if !r.o.NetFull {
		r.add("--unshare-net")
	}
	if r.has("die-with-parent", "bwrap", "the jail could outlive the helper") {
		r.add("--die-with-parent")
	}
	if r.has("cap-drop", "bwrap", "capabilities inside the jail's user namespace are kept") {
		r.add("--cap-drop", "ALL")
		r.dropped.Caps = true
	}
	if !r.o.NestedUserns && r.has("disable-userns", "bwrap", "the command can make user namespaces of its own") {
		r.add("--disable-userns")
		r.dropped.Userns = true
	}
}

// has says whether this bubblewrap knows a flag; where it does not, the
// consequence is reported, once.
func (r *renderer) has(flag, tag, consequence string) bool {
	if r.o.Flags[flag] {
		return true
	}
	if !r.lacks[flag] {
		r.lacks[flag] = true
		r.skips = append(r.skips, plan.Skip{Tag: tag, Reason: fmt.Sprintf("this bubblewrap has no --%s: %s", flag, consequence)})
	}
	return false
}

// fd adds one inherited descriptor and gives its number.
func (r *renderer) fd(in Inherit) string {
	r.inherit = append(r.inherit, in)
	return strconv.Itoa(r.o.FirstFD + len(r.inherit) - 1)
}

// withoutDirs is args without the modes of parents.
func (r *renderer) withoutDirs() []string {
	var out []string
	from := 0
	for _, d := range r.dirs {
		out = append(out, r.args[from:d[0]]...)
		from = d[1]
	}
	return append(out, r.args[from:]...)
}
