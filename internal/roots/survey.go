package roots

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"syscall"

	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// Writability says where a link may have been made by a confined command. A
// directory counts with everything beneath it, through bind mounts too.
type Writability struct {
	// Paths is what this policy lets a command write: writable roots, read-write
	// mounts, a host-path scratch. A literal "/" among them follows every link,
	// since nothing is left to protect.
	Paths []string
	// Shared is what commands of other processes may write: see SharedDirs.
	Shared []string
	// Memory is what earlier policies of this process let a command write. It may
	// be nil.
	Memory *Memory
	// Mounts is this process's mount table, where the caller has it; nil: it is read.
	Mounts []Mount
	// Optional is looked at as well, but a link that may not be followed refuses
	// nothing there: it stands in the layout as Denied. Meant for what the policy
	// does not name, the directories of a PATH.
	Optional []string
	// Narrow is what must be as narrow under every name that a mount of the host
	// gives it, as spelled: see Reached.Aliases.
	Narrow []string
	// Private, where a command has the host's uid 0: what below /etc is root's alone is
	// looked at as well, and told by Reached.Private.
	Private *Private
	// Label names the policy list of a path, "writable_roots[0]", for refusals. It
	// may be nil.
	Label func(path string) string
}

// SharedDirs is the usual Shared: /tmp, /var/tmp, $TMPDIR and the directories that
// the operator declared as mutable.
func SharedDirs(mutable []string) []string {
	dirs := []string{"/tmp", "/var/tmp"}
	if dir := os.Getenv("TMPDIR"); strings.HasPrefix(dir, "/") {
		dirs = append(dirs, dir)
	}
	return append(dirs, mutable...)
}

// Survey walks every path from "/" and describes what it met. A path that is
// missing, closed to this caller or below something that is no directory is not an
// error: the layout says so. The error is a *plan.Refusal where a path is reached
// through a link that a command could have made, or one that must never be
// followed; any other error means that the machine could not be looked at.
//
// The caller closes the result. Descriptors are bounded: what does not fit is
// opened again on demand and compared by device and inode.
func Survey(paths []string, w Writability) (*Reached, error) {
	r, err := newReached()
	if err != nil {
		return nil, err
	}
	s := &survey{r: r, label: w.Label}
	if err := s.run(paths, w); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// survey is the state of one Survey.
type survey struct {
	r      *Reached
	label  func(string) string
	places *places // directories that a command may write, as known so far
	free   bool    // follow every link
	barred string  // where the last walk was given up: a link that was not followed, or what could not be looked at
}

func (s *survey) run(paths []string, w Writability) error {
	places, err := newPlaces(s.r, w.Mounts)
	if err != nil {
		return err
	}
	s.places = places
	s.r.places = places
	s.r.basis.memory = places.merge(w.Memory)
	own := sorted(w.Paths)
	for _, path := range own {
		// Only the spelling counts: a root that a planted link leads to "/" must not
		// switch the judgement off.
		s.free = s.free || path == "/"
	}
	for _, path := range w.Shared {
		// A link here is nobody's grant: where it leads need not be known.
		at, err := s.walk(path)
		switch {
		case short(err):
			return err // else what lies below would not count as writable
		case err == nil:
			places.add(at, &places.set)
		case s.unseen(path, err):
			places.addUnseen(s.barred, &places.set)
		}
	}
	// A parent comes first, so a root below another one is judged with it known.
	for _, path := range own {
		at, err := s.walk(path)
		if err != nil {
			return err
		}
		places.add(at, &places.set, &places.own)
	}
	// Now all places are known, and every link is judged (again).
	for _, path := range append(own, sorted(paths)...) {
		at, err := s.walk(path)
		if err != nil {
			return err
		}
		if at != "" {
			s.r.keep(at)
		}
	}
	for _, path := range w.Narrow {
		s.r.notePlaceholder(path)
	}
	if s.r.aliases, err = s.aliases(sorted(w.Narrow)); err != nil {
		return err
	}
	if s.r.kernel, err = s.kernel(own, w.Narrow); err != nil {
		return err
	}
	if err := s.private(w.Private); err != nil {
		return err
	}
	for _, path := range sorted(w.Optional) {
		_, err := s.walk(path)
		if short(err) {
			return err // else it would silently count as absent
		}
		// What was seen before is what others are reached through: it stays.
		if node, seen := s.r.layout[s.barred]; err != nil && s.barred != "" && (!seen || node.Kind == host.Link) {
			s.r.layout[s.barred] = host.Node{Kind: host.Denied}
		}
	}
	return nil
}

// walk follows one path and gives the physical path of what exists there, or "".
func (s *survey) walk(path string) (string, error) {
	s.barred = ""
	if !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("cannot reach %q: it is not absolute", path)
	}
	at, todo, hops := "/", host.Split(path), 0
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if name == ".." { // of a link's target; at is physical, so this is exact
			at = host.Parent(at)
			continue
		}
		next := host.Join(at, name)
		node, err := s.r.look(at, name, next)
		if err != nil {
			s.barred = next
			return "", s.unreachable(path, err)
		}
		switch node.Kind {
		case host.Dir:
			at = next
		case host.Link:
			if hops++; hops > host.MaxHops || node.Target == "" {
				return "", nil // the layout's own resolution calls it a loop
			}
			if !node.Respelled { // else it is the same directory entry
				if err := s.judge(path, at, next, node); err != nil {
					s.barred = next
					return "", err
				}
			}
			if strings.HasPrefix(node.Target, "/") {
				at = "/"
			}
			todo = append(host.Split(node.Target), todo...)
		case host.Missing, host.Denied:
			return "", nil
		default:
			if len(todo) > 0 {
				return "", nil
			}
			return next, nil
		}
	}
	return at, nil
}

// judge says whether the link at may be followed; it lies in the directory dir.
func (s *survey) judge(path, dir, at string, link host.Node) error {
	if reason := s.r.never[at]; reason != "" {
		return s.refuse(path, fmt.Sprintf("is reached through the link %s, %s", show(at), reason))
	}
	if s.free {
		return nil
	}
	parent := s.r.layout[dir]
	const stickyShared = 0o1002
	foreign := int(link.UID) != s.r.uid && link.UID != parent.UID
	if parent.Mode&stickyShared == stickyShared && foreign {
		return s.refuse(path, fmt.Sprintf("is reached through the link %s, which another user made in a directory that everybody may write (fs.protected_symlinks); name the place that it leads to", show(at)))
	}
	if s.places.writable(dir) {
		return s.refuse(path, fmt.Sprintf("is reached through the link %s, which a confined command could have made; name the place that it leads to", show(at)))
	}
	return nil
}

// unreachable tells a path that cannot be reached from a machine that is short of
// something, which is no fault of the policy.
func (s *survey) unreachable(path string, err error) error {
	if short(err) {
		return fmt.Errorf("cannot look at %q: %w; raise the limit or try again", path, err)
	}
	return s.refuse(path, err.Error())
}

// unseen says whether a walk failed so that what is there is not known. A link that was
// not followed is no such failure: what is behind it has another name.
func (s *survey) unseen(path string, err error) bool {
	res := s.r.layout.Resolve(path)
	return err != nil && (short(err) || len(res.Links) == 0 && res.Node.Kind == host.Unknown)
}

// short says whether this machine has run out of something that it usually has.
func short(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

func (s *survey) refuse(path, reason string) error {
	list := ""
	if s.label != nil {
		list = s.label(path)
	}
	return &plan.Refusal{List: list, Path: path, Reason: reason}
}

// show gives a path for a message, quoted where it holds anything unusual.
func show(path string) string {
	if q := fmt.Sprintf("%q", path); q != `"`+path+`"` || strings.ContainsAny(path, " ,:") {
		return q
	}
	return path
}

func sorted(paths []string) []string {
	out := append([]string(nil), paths...)
	sort.Strings(out)
	return out
}
