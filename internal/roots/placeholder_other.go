//go:build !linux

package roots

import (
	"sandboxd/internal/host"
	"sandboxd/internal/plan"
)

// Placeholders are the mount points that masks need on the host: Linux's alone.
type Placeholders struct{}

// Place refuses an operation that asks for a mount point: nothing is mounted here.
func Place(ops []plan.Op, _ *Reached) (*Placeholders, error) {
	for _, op := range ops {
		if op.Placeholder {
			return nil, &plan.Refusal{List: op.Origin.List, Path: op.Origin.Path, Reason: "needs a mount, which this system does not have"}
		}
	}
	return &Placeholders{}, nil
}

// ID gives nothing: there are none.
func (p *Placeholders) ID(string) (host.ID, bool) { return host.ID{}, false }

// Release has nothing to remove.
func (p *Placeholders) Release() error { return nil }

// notePlaceholder finds none: they are Linux's.
func (r *Reached) notePlaceholder(string) {}
