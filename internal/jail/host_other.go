//go:build !linux && !darwin

package jail

import (
	"context"
	"os"
	"runtime"

	"sandboxd/internal/host"
	"sandboxd/internal/report"
)

// Host is the machine and the helper on it. This system has no backend yet.
type Host struct {
	Config
	Facts host.Facts
}

const noBackend = "this build has no jail for its system"

// NewHost describes a machine for which there is no jail.
func NewHost(_ context.Context, c Config) (*Host, error) {
	f := host.Facts{OS: runtime.GOOS, UID: os.Getuid(), GID: os.Getgid(), LandlockReason: noBackend}
	f.Bwrap = host.Bwrap{State: host.Absent, Reason: noBackend}
	return &Host{Config: c, Facts: f}, nil
}

// Features is what hello tells about this host.
func (h *Host) Features() []string { return report.Features(h.Facts) }

// Unenforced says why nothing at all could be enforced here.
func (h *Host) Unenforced() string { return unenforced(h.Facts) }

// Start refuses: nothing would be enforced.
func (h *Host) Start(req Request, sink Sink) *Run {
	r := newRun(req, sink)
	r.stdin.close()
	r.err = refused("cannot run %q: %s", req.Argv[0], noBackend)
	close(r.done)
	close(r.released)
	return r
}
