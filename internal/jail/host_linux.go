package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sandboxd/internal/cgroup"
	"sandboxd/internal/host"
	"sandboxd/internal/host/probe"
	"sandboxd/internal/report"
	"sandboxd/internal/roots"
	"sandboxd/internal/stage2/carried"
	"sandboxd/internal/stage2/spec"
	"sandboxd/protocol"
)

// Host is the machine and the helper on it: what stays the same between
// executions.
type Host struct {
	Config
	Facts host.Facts // without a layout: each execution surveys its own

	self       self
	path       string // the helper's inherited PATH
	namespaces []spec.Namespace
	mounts     *mountTable
	leash      *tether // nil without bubblewrap
	memory     roots.Memory
	private    roots.Private
	base       *cgroup.Base // nil: noBase says why
	noBase     string
	serial     atomic.Uint64 // of executions, for the names of their cgroups
	standing   standing
	sketch     atomic.Pointer[sketch] // of the last job that left one
	noExitInfo atomic.Bool            // this kernel's pidfds do not tell exit statuses
	noTerminal bool                   // a controlling one, that a scaffolding could inherit
}

// namespaceKinds are those that bubblewrap makes anew, by their names below
// /proc/self/ns; net only without network access.
var namespaceKinds = []string{"mnt", "pid", "user", "ipc", "uts", "cgroup", "net"}

// NewHost probes the machine and makes the helper a child subreaper, so that a
// namespace's init does not stay behind as a zombie of pid 1. The end of ctx cuts the
// look at bubblewrap short; what that leaves unknown is Unsure.
func NewHost(ctx context.Context, c Config) (*Host, error) {
	// bubblewrap inherits what the broker left inheritable: nothing of it may name
	// the host to the jail's init. Before Linux 5.11 the kernel refuses, and
	// bubblewrap closes what it does not know by itself.
	_ = unix.CloseRange(spec.SpecFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	h := &Host{Config: c, path: os.Getenv("PATH")}
	if err := h.self.open(carried.Image); err != nil {
		return nil, err
	}
	forget(carried.Image)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("cannot become a child subreaper: %w", err)
	}
	allowCoreLimit()
	h.noTerminal = leaveTerminal() // before anything inherits it
	tied := tie()
	var err error
	h.Facts, err = probe.Facts(ctx, probe.Options{Bwrap: c.Bwrap, AllowNestedUserns: c.AllowNestedUserns})
	end, terr := tied(err == nil && h.Facts.Bwrap.State != host.Absent)
	if err = errors.Join(err, terr); err != nil {
		return nil, err
	}
	h.leash = end
	for _, kind := range namespaceKinds {
		var st unix.Stat_t
		if err := unix.Stat("/proc/self/ns/"+kind, &st); err != nil {
			return nil, fmt.Errorf("cannot look at the helper's %s namespace: %w", kind, err)
		}
		h.namespaces = append(h.namespaces, spec.Namespace{Name: kind, Ino: st.Ino})
	}
	if h.mounts, err = openMountTable(); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 { // else nobody looks
		h.private.Ready()
	}
	h.openBase()
	return h, nil
}

// Features is what hello tells about this host.
func (h *Host) Features() []string {
	if h.base != nil {
		return report.Features(h.Facts, protocol.TagCgroupV2)
	}
	return report.Features(h.Facts)
}

// Unenforced says why nothing at all could be enforced here, or "".
func (h *Host) Unenforced() string { return unenforced(h.Facts) }
