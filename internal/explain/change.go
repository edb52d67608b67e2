package explain

import (
	"maps"
	"strconv"
	"strings"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// Kind is what a change does to a policy.
type Kind uint8

// Kinds of change, the gentler ones first.
const (
	MountAccess Kind = iota + 1 // make the mount at Index read-write
	AddMount                    // a read-write mount of Path
	AddReadable                 // a readable root
	AddWritable                 // a writable root
	Remove                      // take the entry at List and Index out
	Unguard                     // leave the preset's guard out
)

// Change is one step towards more access.
type Change struct {
	Kind  Kind
	Path  string
	List  string
	Index int
}

// Changes proposes single changes that may let a command read or write where the
// answer says that it may not, the smallest first. Whether one does, planning it
// tells; some paths need a second one then.
func (s Scene) Changes(a Answer, write bool) []Change {
	switch {
	case a.HeldBack != "":
		return nil // no policy widens what the host's own modes give
	case a.Class == plan.Dev && a.Path == terminal:
		return nil
	case a.Class == plan.Dev:
		return []Change{{Kind: AddMount, Path: a.Path}}
	case a.Class == plan.Proc:
		return nil
	}
	var out []Change
	d := a.Decider
	switch {
	case d.List == "mounts" && a.Class == plan.MountRO:
		out = append(out, Change{Kind: MountAccess, List: d.List, Index: d.Index, Path: d.Path})
	case d.List == "protected":
		out = append(out, Change{Kind: Remove, List: d.List, Index: d.Index, Path: d.Path})
	}
	at := s.existing(a)
	switch {
	case at == "":
	case write:
		out = append(out, Change{Kind: AddWritable, Path: at})
	default:
		out = append(out, Change{Kind: AddReadable, Path: at})
	}
	if a.Kind >= host.Socket { // a socket or device is better named alone
		out = append([]Change{{Kind: AddMount, Path: a.Path}}, out...)
	}
	return append(out, Change{Kind: Unguard})
}

// existing is the path to grant: itself, or for what is not there yet the directory
// that is to hold it. A grant of "/" is never proposed.
func (s Scene) existing(a Answer) string {
	at := a.Path
	if a.Missing != "" {
		at = host.Parent(a.Missing)
	}
	if at == "/" || a.Kind == host.Denied {
		return ""
	}
	return at
}

// Enough says whether an answer gives what was wanted.
func (a Answer) Enough(write bool) bool {
	if write {
		return a.Effect == plan.ReadWrite || a.Effect == plan.Private && a.Write
	}
	return a.Effect == plan.ReadOnly || a.Effect == plan.ReadWrite || a.Effect == plan.Private && a.Read
}

// OnHost says that the jail has something of its own in the place of what the host has.
func (a Answer) OnHost() bool { return a.Class == plan.ScratchTmpfs && a.Kind >= host.Dir }

// Fixed says why no change of a policy gives more at a path.
func Fixed(a Answer) string {
	switch {
	case a.Class == plan.Proc:
		return "the jail needs a /proc of its own, and it is read-only"
	case a.Path == terminal:
		return "a command has no controlling terminal"
	case a.Class == plan.Dev && a.Missing != "":
		return "the host has no such device, and the jail's own /dev is read-only"
	case a.Class == plan.Dev:
		return "the jail has a /dev of its own, and it is read-only"
	case a.Kind == host.Denied:
		return "this user may not search the directory that holds it"
	}
	return "there is nothing on the host to grant, and no entry of a policy makes it"
}

// Service says what a path gives whoever reaches it, where it is one of those that a
// view hides by itself.
func (s Scene) Service(path string) string {
	for _, place := range append(plan.ServicePlaces[:len(plan.ServicePlaces):len(plan.ServicePlaces)], plan.SecretPlaces...) {
		at := strings.ReplaceAll(place.Path, "{uid}", strconv.Itoa(s.Facts.UID))
		if host.Beneath(path, at) {
			return place.Why
		}
	}
	for _, op := range s.Plan.Ops { // what is found on this host beside the tables
		if o := op.Origin; host.Beneath(path, op.Path) && (o.List == "service-socket" || o.List == "root-secret" || o.List == "kernel") {
			return o.Why
		}
	}
	return ""
}

// Pretend gives a layout in which a path, with all above it, is there.
func Pretend(l host.Layout, path string, f host.Facts) host.Layout {
	out := maps.Clone(l)
	for at := path; out[at].Kind != host.Dir; at = host.Parent(at) {
		out[at] = host.Node{Kind: host.Dir, Mode: 0o755, UID: uint32(f.UID), GID: uint32(f.GID)}
	}
	return out
}
