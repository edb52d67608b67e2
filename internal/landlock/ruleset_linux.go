package landlock

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// Ruleset is a ruleset of the kernel, complete and not yet enforced. It is one
// layer: in a second one every rename across directories would fail with EXDEV,
// whatever both grant.
type Ruleset struct {
	ABI   int  // whose rights it handles
	Net   bool // TCP bind and connect are denied
	Scope bool // abstract sockets and signals stay in the domain
	Unix  bool // path sockets outside the grants cannot be connected to

	fd int
}

// Build opens what the rules name and makes the ruleset. Without Landlock in this
// kernel, or where s says not Enabled, the Ruleset is nil and a skip says why. An
// error comes from a layer that is there, and must refuse the execution.
//
// No rule follows a symbolic link: the plan resolved them, and one that turned up
// since is somebody's.
func Build(s spec.Landlock) (*Ruleset, []spec.Skip, error) {
	if !s.Enabled {
		return nil, []spec.Skip{{Tag: "landlock", Reason: s.Reason}}, nil
	}
	abi, err := ABI()
	if abi < 1 {
		return nil, []spec.Skip{{Tag: "landlock", Reason: err.Error()}}, nil
	}
	return build(s, min(abi, MaxABI))
}

func build(s spec.Landlock, abi int) (*Ruleset, []spec.Skip, error) {
	h := handledBy(abi)
	if !s.DenyNet {
		h.net = 0
	}
	if !s.Scope {
		h.scope = 0
	}
	fd, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{
		HandledAccessFS: uint64(h.fs), HandledAccessNet: h.net, Scoped: h.scope,
	}, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot create a Landlock ruleset of ABI %d: %w", abi, err)
	}
	rs := &Ruleset{ABI: abi, Net: h.net != 0, Scope: h.scope != 0, Unix: h.fs&resolveUnix != 0, fd: fd}
	if err := rs.addAll(s); err != nil {
		rs.Close()
		return nil, nil, err
	}
	return rs, skips(s, abi), nil
}

func (rs *Ruleset) addAll(s spec.Landlock) error {
	self := "/proc/" + strconv.Itoa(os.Getpid())
	for _, rule := range s.Rules {
		path := rule.Path
		if path == selfProc {
			path = self
		}
		if err := rs.add(path, rule.Access, rule.Optional); err != nil {
			return err
		}
	}
	if !s.NestedUserns {
		return nil
	}
	for _, name := range usernsFiles {
		if err := rs.grant(self+"/"+name, readFile|writeFile|truncate, true); err != nil {
			return err
		}
	}
	return nil
}

func (rs *Ruleset) add(path string, a spec.Access, optional bool) error {
	if accessRights(a) == 0 {
		return fmt.Errorf("cannot grant access %d on %q: no such access", a, path)
	}
	return rs.grant(path, accessRights(a), optional)
}

func (rs *Ruleset) grant(path string, want fsRights, optional bool) error {
	fd, err := open(path)
	if optional && isAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open %q for a Landlock rule: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("cannot stat %q for a Landlock rule: %w", path, err)
	}
	want = grantable(want, rs.ABI, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if want == 0 {
		return nil // ENOMSG: nothing to grant
	}
	attr := ll.PathBeneathAttr{ParentFd: fd, AllowedAccess: uint64(want)}
	if err := ll.LandlockAddPathBeneathRule(rs.fd, &attr, 0); err != nil {
		return fmt.Errorf("cannot add a Landlock rule (%v) for %q: %w", want, path, err)
	}
	return nil
}

// open repeats what a signal interrupted: file systems in user space give EINTR.
func open(path string) (int, error) {
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// isAbsent also takes a link (ELOOP) for nothing: what it leads to needs a rule of
// its own.
func isAbsent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) ||
		errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EACCES)
}

// Enforce restricts the calling thread, which must be locked to its goroutine, have
// no_new_privs set and be the one that calls execve: other threads of this process
// are not restricted, and execve ends them. It closes the ruleset.
func (rs *Ruleset) Enforce() error {
	if rs == nil || rs.fd < 0 {
		return errors.New("cannot enforce a Landlock ruleset: there is none")
	}
	defer rs.Close()
	if err := ll.LandlockRestrictSelf(rs.fd, 0); err != nil {
		return fmt.Errorf("cannot enforce the Landlock ruleset: %w", err)
	}
	return nil
}

// Close gives up a ruleset that is not to be enforced.
func (rs *Ruleset) Close() {
	if rs != nil && rs.fd >= 0 {
		unix.Close(rs.fd)
		rs.fd = -1
	}
}
