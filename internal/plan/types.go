// Package plan turns a policy and the facts of a host into an ordered list of
// mount operations, or into a refusal. It is pure: the same policy and facts give
// the same plan on any machine. Everything downstream (the bubblewrap arguments,
// the Seatbelt profile, the audit, explain) reads that list.
//
// A plan protects nothing by itself. It says what the view must be; whether the
// kernel made it so is for stage 2 to verify from inside. It does not know what
// happens on the host after the facts were gathered, cannot find other hard links
// to a protected file, and does not see sockets that listen in places it has no
// entry for.
package plan

import "sandboxd/internal/host"

// Class is what an operation makes of its region.
type Class uint8

// Classes, in the order of strength for grants of one and the same region.
const (
	RootTmpfs    Class = iota + 1 // the empty root
	SystemRO                      // base view, read-only
	Readable                      // readable root
	ScratchTmpfs                  // fresh tmpfs
	ScratchPath                   // host directory, read-write
	Writable                      // writable root
	LinkTo                        // a symbolic link reproduced; Target is its text
	Pin                           // a directory bound onto itself so that it cannot be renamed
	Proc                          // fresh /proc, read-only
	Dev                           // fresh /dev with a sized /dev/shm, read-only
	MaskDir                       // an empty, read-only directory over the path
	MaskFile                      // an empty (or, with Content, fixed) read-only regular file
	MountRO                       // explicit mount
	MountRW                       // explicit mount
	Seal                          // the root itself read-only
)

// Origin says where an operation came from: a list of the policy with the index
// and the spelling there, or the base view.
type Origin struct {
	List  string // "writable_roots", "base", "proc", "service-socket", ...
	Index int    // -1 outside the policy's lists
	Path  string // as spelled
	Why   string // reason, for the base view's and the service sockets' data
}

// Op is one operation of the plan.
type Op struct {
	Path   string // canonical destination, no component of which is a link
	Class  Class
	Origin Origin

	Node        host.Node // of the host's inode at Path (Kind Missing for a placeholder)
	Target      string    // LinkTo: the link's text
	Perms       uint32    // MaskDir, MaskFile, ScratchTmpfs
	Size        uint64    // ScratchTmpfs, Dev (of /dev/shm): bytes
	Content     string    // MaskFile: what a reader sees, usually ""
	Placeholder bool      // the mount point must be made on the host first (roots)
}

// Skip is something that was asked for and that the plan cannot give.
type Skip struct{ Tag, Reason string }

// Plan is the ordered list of operations: what comes later wins.
type Plan struct {
	Ops      []Op
	Skips    []Skip
	Scratch  string // "" none, else the path SANDBOXD_SCRATCH_DIR names
	HostView bool
	Later    []string // services' places that the view would show, were there anything
	Absent   []string // the same of protected paths

	Asked []Asked // what the policy asked for, for the audit and for verification
}

// Asked is one path of the policy and what became of it.
type Asked struct {
	Origin Origin
	Path   string // canonical
	Node   host.Node
	State  State
	Alias  bool // another name, by a mount of the host, of a protected path

	// ReadOnly says that the host has it mounted read-only, which no grant widens. The
	// survey does not know; whoever asks for an audit says it.
	ReadOnly bool
}

// State is what the plan does about one path of the policy.
type State uint8

// States of a path of the policy.
const (
	Planned State = iota // an operation, or a region above with the same access, gives it
	Absent               // not on this host: nothing to bind or to mask
	Hidden               // protected and outside every grant: invisible, no mask needed
	Barred               // protected and out of the command's reach by the host's own doing
)

// Values of Origin.List.
const (
	listWritable  = "writable_roots"
	listReadable  = "readable_roots"
	listProtected = "protected"
	listMounts    = "mounts"
	listScratch   = "scratch"
	listBase      = "base"
	listService   = "service-socket"
	listSecret    = "root-secret"
	listKernel    = "kernel"
	listProc      = "proc"
	listDev       = "dev"
	listPin       = "pin"
	listLink      = "link"
)

// tagOptional is the skip of a mount that the policy does not require and the
// host does not have (protocol/tags.toml).
const tagOptional = "optional-mount"

// Refusal is a policy that cannot be honoured on this host.
type Refusal struct {
	List   string // policy list and index, "writable_roots[0]"
	Path   string // as spelled
	Reason string // the cause, and what to change
}

// Audit is what replaying a plan shows: counts of the policy's own paths whose
// effective view is what the policy asked for.
type Audit struct {
	RO, RW, Mask, Absent, Pin, BindRO, BindRW int
	Scratch                                   string // "tmpfs", "path" or "none"
	Base                                      string // "minimal" or "host-view"
	Digest                                    string // 16 hex digits
	Skips                                     []Skip
	byLandlock                                []Origin // counted in RO or BindRO, where only Landlock makes it so
}
