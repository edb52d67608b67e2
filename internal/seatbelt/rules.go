package seatbelt

import "sandboxd/internal/host"

// Groups of operations. They are the operations of sandbox(7)'s profile language,
// version 1; the names with a star stand for all that begin with them.
var (
	readOps = []string{"file-read*", "file-map-executable", "process-exec*"}
	// Making a hard link is asked of the file that is linked. It belongs to writing:
	// a second name in a writable place would make a read-only file writable.
	writeOps = []string{"file-write*", "file-link"}
	allOps   = []string{"file-read*", "file-map-executable", "process-exec*", "file-write*", "file-link"}
	// Renaming is asked as removing the old name and making the new one.
	moveOps = []string{"file-write-unlink", "file-write-create"}
	metaOps = []string{"file-read-metadata"}
	// What a program does with a device: never its mode, owner or name.
	deviceOps  = []string{"file-read*", "file-write-data", "file-ioctl"}
	connectOps = []string{"network-outbound"}
	listenOps  = []string{"network-bind", "network-inbound"}
)

// filter is one condition of a rule; a rule applies where any of its filters does.
type filter struct {
	kind  string // "literal", "subpath" or "regex", with value; "" with raw
	value string // becomes a parameter, never text
	peer  string // "remote" or "local": the path of a Unix socket
	raw   string // text of this package's own tables
}

// rule is one line of the profile. Of the rules that match, the last one decides.
type rule struct {
	allow   bool
	ops     []string
	filters []filter // none: everywhere
	note    string   // who needs it
	guard   bool     // a deny of what is protected: nothing may come after it
}

func literal(path string) filter { return filter{kind: "literal", value: path} }

// region covers a directory with all below it, or the one file.
func region(path string, kind host.Kind) filter {
	if kind == host.Dir || kind == host.Missing || kind == host.Unknown {
		return filter{kind: "subpath", value: path}
	}
	return literal(path)
}

func remote(f filter) filter { return socket(f, "remote") }
func local(f filter) filter  { return socket(f, "local") }

// socket takes a path for that of a Unix socket. There is nothing below one, and
// subpath is the form that every release takes in this place.
func socket(f filter, peer string) filter {
	f.kind, f.peer = "subpath", peer
	return f
}

func allow(ops []string, f ...filter) rule { return rule{allow: true, ops: ops, filters: f} }
func deny(ops []string, f ...filter) rule  { return rule{ops: ops, filters: f} }
