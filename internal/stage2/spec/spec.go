// Package spec is the language between the helper and stage 2: the specification
// that goes in and the report or failure that comes out, as values with a strict
// encoding. It enforces nothing.
package spec

import "sandboxd/internal/host"

// Descriptor numbers in stage 2.
const (
	SpecFD   = 3 // memfd with the specification
	ReportFD = 4 // SOCK_SEQPACKET to the helper
)

// Go is the one byte by which the helper lets stage 2 execute the command after its
// report. It may come before that. A standby's command comes with it where there is nothing
// left to wait for, or with Wait.
const (
	Go   = 'g'
	Wait = 'w'
)

// Command is what depends on the request alone.
type Command struct {
	Argv []string
	Env  []string // NAME=VALUE, sorted: exactly what the command gets
	Path []string // directories of the constructed PATH, for the look-up of Argv[0]
	Cwd  string
}

// Spec is everything stage 2 is told. It travels as canonical msgpack in a memfd.
type Spec struct {
	Command
	Standby bool // apply everything else, then wait for a Command: a memfd over fd 4

	Jailed     bool        // inside bubblewrap
	Namespaces []Namespace // the helper's own, of every kind the jail must have anew
	NoCaps     bool        // bubblewrap was told to drop every capability
	NoUserns   bool        // bubblewrap was told to leave no way to a user namespace
	View       View        // what must be mounted, and what may be
	Checks     []Check     // inodes that must be (or must not be) what they were

	Landlock Landlock
	Seccomp  Seccomp

	FsizeBytes uint64 // 0: no ceiling
	CPUSeconds uint64 // 0: no ceiling

	// macOS alone.
	MemBytes uint64 // RLIMIT_AS, 0: no ceiling
	Pids     uint64 // RLIMIT_NPROC, 0: no ceiling
	Denied   string // a file that the profile must not let anybody open, "" without a profile
	Allowed  string // a file that it must let be read

	Require []string // layers whose skip must refuse the execution (--require-enforced)
}

// Namespace is one namespace of the helper: its name below /proc/self/ns and inode.
type Namespace struct {
	Name string
	Ino  uint64
}

// View is the mounts that bubblewrap was told to make, and what can come along with
// them. Without mounts nothing is looked at.
type View struct {
	Mounts  []Mount
	Host    []HostMount // the host's mounts below one that holds a tree, once for each such one
	Devices []string    // major:minor of every file system that the host had mounted
}

// Required is the number of mount points that must be there.
func (v View) Required() (n uint64) {
	for _, m := range v.Mounts {
		if !m.Optional {
			n++
		}
	}
	return n
}

// Mount is one mount point of the plan.
type Mount struct {
	Path     string
	Holds    Holds
	ReadOnly bool
	Optional bool // bubblewrap may mount it or not
}

// Holds says what can be mounted below a mount point without a plan for it.
type Holds uint8

// What a mount holds.
const (
	HoldsFile  Holds = 1 + iota // nothing else
	HoldsFresh                  // a file system made for this jail, or parts of it bound onto it
	HoldsTree                   // a tree of the host with whatever the host has mounted in it
)

// HostMount is one mount of the host, as its /proc/self/mountinfo has it.
type HostMount struct {
	Path   string
	Device string // major:minor
}

// Check is one look at an inode from inside the jail.
type Check struct {
	Path string
	What string  // CheckRoot, ...
	ID   host.ID // root, mount, pin: must be this; mask, placeholder: must not be (zero: unknown)
	Rdev uint64  // device mounts: must be this where not 0
	List string  // where it comes from, for messages: "writable_roots[0]"
}

// Kinds of check. Stage 2 makes each one that it is given, jailed or not: without
// bubblewrap there is no mask to look for and none must be asked for.
const (
	CheckRoot        = "root"        // is this inode
	CheckMount       = "mount"       // is this inode, and this device where Rdev is not 0
	CheckPin         = "pin"         // is this inode
	CheckMask        = "mask"        // exists, is not this inode, and is read-only
	CheckPlaceholder = "placeholder" // as a mask; and an empty directory or a file
)

// Access is what a Landlock rule grants.
type Access uint8

// Landlock accesses.
const (
	AccessRead    Access = 1 + iota // read and execute
	AccessWrite                     // read, execute, write, create, remove, rename across
	AccessDevice                    // read, write, ioctl
	AccessConnect                   // read, execute, connect to a socket (explicit read-only mounts)
)

// Landlock says what ruleset to build.
type Landlock struct {
	Enabled      bool // false: Reason says why
	Reason       string
	Rules        []Rule
	DenyNet      bool // TCP bind and connect, ABI 4 and later
	Scope        bool // abstract sockets and signals, ABI 6 and later
	NestedUserns bool // write grant on /proc/self/{uid_map,gid_map,setgroups}
	NameLacking  bool // without bubblewrap: a skip names the rights that this ABI lacks
}

// Rule grants Access beneath Path.
type Rule struct {
	Path     string
	Access   Access
	Optional bool // absent is fine
}

// Seccomp says which filters to install.
type Seccomp struct {
	DenyNet   bool // the net filter
	DenyTrace bool // ptrace, process_vm_*, pidfd_getfd too (no Landlock)
}

// Begun is the message of a stage 2 that has just begun: the helper learns who it is, and
// sees to it that the command may run, while stage 2 does its part.
type Begun struct{}

// Parked is the message of a stage 2 that has applied everything and waits for its
// Command.
type Parked struct{}

// Report is what stage 2 says just before execve.
type Report struct {
	Namespaces         []string // kinds found to be another than the helper's
	NoCaps             bool     // no capability is left in any of the thread's sets
	NoUserns           bool     // an attempt to make a user namespace was denied
	Mounts             uint64   // mount points of the plan that are there, with no other beside them
	Roots              uint64   // roots and mounts verified by device and inode
	Masks              uint64   // masks verified not to be the host's inode
	LandlockABI        uint64
	LandlockNet        bool
	LandlockScope      bool
	LandlockUnix       bool
	SeccompMode        uint64 // "Seccomp:" of /proc/self/status
	SeccompFilters     uint64
	SeccompNet         bool
	SeccompHardening   bool
	NoNewPrivs         bool
	RlimitFsize        bool
	RlimitCPU          bool
	FsizeInherited     uint64 // bytes: the stricter limit that was there already, 0 for none
	CPUInherited       uint64 // seconds: the same
	RlimitAddressSpace bool   // macOS
	RlimitProcesses    bool   // macOS
	Seatbelt           bool   // macOS: the profile denied what it must and allowed what it must
	Skips              []Skip
}

// Skip is a layer that was asked for and is not there.
type Skip struct{ Tag, Reason string }

// Failure is a step that failed; the command did not run.
type Failure struct {
	Step  string // StepSpec, ...
	Errno uint64 // 0 where there is none
	Msg   string // for a person, with the errno's name; no secrets
}

// Steps of stage 2, in the order in which Linux makes them. A standby makes the first
// three of the command, and [StepVerify] once more, after [StepRequire]; macOS makes
// [StepSession] and [StepSeatbelt] first. [StepLandlock] is also the enforcement, after
// [StepNoNewPrivs].
const (
	StepSpec        = "spec"       // the specification could not be read
	StepCommand     = "command"    // the Command of a standby could not be read
	StepChdir       = "chdir"      // the working directory
	StepLookup      = "lookup"     // argv[0]: ENOENT not found, EACCES not executable, EISDIR
	StepNamespaces  = "namespaces" // a namespace is the helper's own: bubblewrap made none
	StepPrivileges  = "privileges" // a capability is left, or a user namespace can be made
	StepView        = "view"       // a mount is missing, writable, or in no plan
	StepSession     = "session"    // setsid
	StepSeatbelt    = "seatbelt"   // macOS: the profile does not deny, or does not allow, what it must
	StepVerify      = "verify"     // an inode is not what it must be
	StepLandlock    = "landlock"   // building or enforcing the ruleset
	StepRlimit      = "rlimit"     // FSIZE, CPU, CORE
	StepSignals     = "signals"    // dispositions and mask
	StepNoNewPrivs  = "no-new-privs"
	StepDescriptors = "descriptors" // the command's streams, close-on-exec for the rest
	StepSeccomp     = "seccomp"     // installing, or reading back that it is not there
	StepRequire     = "require"     // a layer of Spec.Require is a skip: "refused", not "spawn_failed"
	StepExec        = "exec"        // execve
	StepInternal    = "internal"    // a defect in stage 2 itself, at any moment
)
