package protocol

// Version numbers of the wire.
const (
	EnvelopeVersion = 1       // frame "v"
	ExecVersion     = 3       // hello "proto"
	PolicyVersion   = 2       // policy "v"
	MaxFrame        = 1 << 24 // bytes of a frame's map, length prefix excluded
	MaxPolicy       = 1 << 20 // bytes of the base policy on fd 3
)

// Kind names a frame's kind.
type Kind string

// The kinds of frame. See PROTOCOL.md, "Kinds".
const (
	KindHello     Kind = "hello"
	KindExecStart Kind = "exec_start"
	KindExecStdin Kind = "exec_stdin"
	KindExecOut   Kind = "exec_out"
	KindExecExit  Kind = "exec_exit"
	KindCancel    Kind = "cancel"
	KindShutdown  Kind = "shutdown"
	KindHeartbeat Kind = "heartbeat"
	KindError     Kind = "error"
)

// Code is the machine-readable reason of an error frame.
type Code string

// The error codes. See PROTOCOL.md, "Error codes".
const (
	CodeMalformedFrame Code = "malformed_frame"
	CodeProtoMismatch  Code = "proto_mismatch"
	CodeUnknownKind    Code = "unknown_kind"
	CodeBusy           Code = "busy"
	CodeNoExec         Code = "no_exec"
	CodeBadPolicy      Code = "bad_policy"
	CodeRefused        Code = "refused"
	CodeSpawnFailed    Code = "spawn_failed"
)

// Stream names an output stream.
type Stream string

// The two output streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Body is the body of one kind of frame. Append writes its canonical map.
type Body interface {
	Kind() Kind
	Append(dst []byte) []byte
}

// Frame is one decoded frame. Body is nil for a kind this version does not know
// (Kind then holds the name that came).
type Frame struct {
	ID   uint64
	Kind Kind
	Body Body
}

// Hello opens the channel in both directions. Decoded with a Proto other than
// ExecVersion it holds nothing else: another version has other keys.
type Hello struct {
	Proto    uint64
	Peer     string
	Features []string
}

// ExecStart asks for one command. Policy and Limits hold the raw, well-formed
// msgpack maps as they came (nil when absent): their rules are the policy
// decoder's business, so that a breach is bad_policy and not malformed_frame.
type ExecStart struct {
	Argv   []string
	Env    map[string]string
	Cwd    string
	Token  []byte
	Policy []byte
	Limits []byte
}

// ExecStdin carries bytes for the command's standard input. Decoded, Data aliases
// the reader's buffer: see Reader.Next.
type ExecStdin struct {
	Data []byte
	EOF  bool
}

// ExecOut carries bytes of one output stream. Decoded, Data aliases the reader's
// buffer: see Reader.Next.
type ExecOut struct {
	Stream    Stream
	Data      []byte
	Bytes     uint64
	Truncated bool
}

// ExecExit ends an execution. Code and Signal travel as 32-bit numbers.
type ExecExit struct {
	Code            int
	Signal          int
	StdoutBytes     uint64
	StderrBytes     uint64
	StdoutTruncated bool
	StderrTruncated bool
	Enforcement     []string
	Degraded        bool
	WallMS          uint64
	TimedOut        bool
	Cancelled       bool
}

// Cancel asks for the running execution to be stopped by the ladder.
type Cancel struct{}

// Shutdown asks the helper to end in an orderly way.
type Shutdown struct{}

// Heartbeat is answered under the same id.
type Heartbeat struct{}

// ErrorBody is the body of an error frame.
type ErrorBody struct {
	Code Code
	Msg  string
}
