package protocol

// Policy is the policy document, wire version 2. See PROTOCOL.md, "Policy".
type Policy struct {
	WritableRoots []string
	ReadableRoots []string
	Protected     []string
	Mounts        []Mount
	Network       Network
	Limits        Limits
	EnvAllow      []string
	Scratch       string // ScratchTmpfs or an absolute host path
}

// ScratchTmpfs asks for a fresh private scratch.
const ScratchTmpfs = "tmpfs"

// Access is what an explicit mount may be used for.
type Access string

// The two kinds of access.
const (
	ReadOnly  Access = "ro"
	ReadWrite Access = "rw"
)

// Mount is one explicit bind, seen at its own path.
type Mount struct {
	Path     string
	Access   Access
	Required bool
}

// NetMode is the network mode of a policy.
type NetMode string

// The network modes.
const (
	NetOff   NetMode = "off"
	NetFull  NetMode = "full"
	NetProxy NetMode = "proxy"
)

// Network is a policy's network rule. Allow and Proxy belong to NetProxy alone.
type Network struct {
	Mode  NetMode
	Allow []string
	Proxy string
}

// Limits are ceilings; 0 means none of that kind.
type Limits struct {
	CPUSeconds  uint64 // cpu_s: CPU seconds of each process
	WallSeconds uint64 // wall_s: seconds from start to cancel
	MemBytes    uint64 // mem_bytes: bytes of the whole execution
	Pids        uint64 // pids: tasks of the whole execution
	FsizeBytes  uint64 // fsize_bytes: bytes of each file written
	OutputBytes uint64 // output_bytes: bytes of each output stream
}
