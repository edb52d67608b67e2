// Package host describes the machine as values: what the file system looks like
// along the paths a policy names, and what the kernel offers. It does no I/O;
// internal/host/probe and internal/roots fill these values in.
package host

// Kind is the type of an inode, or why there is none.
type Kind uint8

// Kinds of node.
const (
	Unknown Kind = iota // never looked at; planning with it is a programming error
	Missing
	Denied // an ancestor cannot be searched by this caller (EACCES)
	Dir
	File
	Link
	Socket
	Fifo
	CharDevice
	BlockDevice
)

// ID identifies an inode for as long as it is held open.
type ID struct{ Dev, Ino uint64 }

// Node is what lstat says of one physical path (a path none of whose parents is
// a symbolic link).
type Node struct {
	Kind   Kind
	ID     ID
	Target string // of a Link
	Nlink  uint64
	Rdev   uint64
	Mode   uint32 // permission bits with setuid, setgid and sticky
	UID    uint32
	GID    uint32
	// Placeholder says that it is empty and marked as the stand-in for a missing path.
	// A command can set that mark too, so it counts only where one is called for.
	Placeholder bool
	// Respelled, of a Link: there is none. The kernel itself calls the object here by
	// Target, whatever leads to it: another letter case or Unicode form on a volume that
	// takes them for one, or a firmlink of macOS. No command can have planted that.
	Respelled bool
}

// Layout maps physical paths to nodes: every component that a walk of the
// policy's paths met, "/" included. A walk stops at the first missing component,
// which is recorded as Missing.
type Layout map[string]Node

// Aliases gives, for a path as spelled, the other names under which bind mounts of
// the host show the same inode, or parts of what lies beneath it.
type Aliases map[string][]string

// KernelMount is a mount of the host that shows a file system of the kernel's own.
type KernelMount struct {
	Path   string // physical
	FSType string // proc_pid_mountinfo(5)
}

// LinkHop is one symbolic link passed on the way to a path.
type LinkHop struct {
	Path   string // physical path of the link itself
	Target string // its text
}

// Resolution is the outcome of resolving one path on a Layout.
type Resolution struct {
	Path    string    // physical path; what is missing is appended as spelled
	Node    Node      // of Path (Kind Missing, Denied or Unknown where there is none)
	Missing string    // physical path of the first missing component, or ""
	Links   []LinkHop // in the order passed
	Err     error     // a loop, or a component below something that is no directory
}

// Service is a path that a variable of the helper's own environment names, as those of
// agents, editors and daemons do with their sockets.
type Service struct{ Variable, Path string }

// Bwrap is what is known of bubblewrap on this host.
type Bwrap struct {
	Path    string
	Version string
	State   State
	Reason  string          // why not Works, in words for a person
	Cause   Cause           // the same for advice
	Flags   map[string]bool // options its help text names, without "--"
	Setuid  bool
}

// State is a three-valued probe result. Absent is an established absence; Unsure
// (a timeout, EAGAIN, ENOMEM, ENOSPC) must never be taken for it.
type State uint8

// Probe results.
const (
	Unsure State = iota
	Works
	Absent
)

// Cause is what keeps bubblewrap from working, as far as it is known: "" is nothing, or
// something that no advice fits.
type Cause string

// Causes.
const (
	NotInstalled   Cause = "not-installed"
	NamespaceQuota Cause = "namespace-quota"    // user.max_*_namespaces=0
	NoUserns       Cause = "no-user-namespaces" // CONFIG_USER_NS
	ClosedUserns   Cause = "unprivileged-clone" // kernel.unprivileged_userns_clone=0
	AppArmorUserns Cause = "apparmor-userns"    // kernel.apparmor_restrict_unprivileged_userns
	AppArmor       Cause = "apparmor"           // another profile
	SeccompFilter  Cause = "seccomp-filter"     // this process was started under one
	ProcCovered    Cause = "proc-covered"       // as container runtimes do it
	ProcOptions    Cause = "proc-options"       // hidepid and the like
	SetuidBwrap    Cause = "setuid-bubblewrap"  // one that lacks options in that mode
)

// Facts is everything planning looks at.
type Facts struct {
	OS                string // GOOS
	UID, GID          int
	TotalRAM          uint64 // bytes
	Home              string // HOME of the helper, "" if unset
	SSHAuth           string // SSH_AUTH_SOCK of the helper, "" if unset
	Services          []Service
	HelperPath        string // physical path of the helper's image ("" if unknown)
	Layout            Layout
	Aliases           Aliases
	Kernel            []KernelMount // inside what a policy grants
	Private           []string      // below /etc, what uid 0 alone may read; of a root caller
	PrivateMore       bool          // there is more of it than Private has
	Bwrap             Bwrap
	LandlockABI       int    // 0: none
	LandlockReason    string // why 0
	Seccomp           bool
	AllowNestedUserns bool

	Cwd          string // cwd of the execution, "" if none is planned for: links on its way are reproduced
	ScratchDir   string // darwin: the private directory that stands for scratch "tmpfs"
	DeveloperDir string // darwin: the selected developer directory, "" if none
}
