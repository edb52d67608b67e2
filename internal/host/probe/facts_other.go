//go:build !linux && !darwin

package probe

import (
	"context"

	"sandboxd/internal/host"
)

func fill(_ context.Context, f *host.Facts, _ Options) error {
	f.Bwrap = host.Bwrap{State: host.Absent, Reason: "bubblewrap exists on Linux only"}
	f.LandlockReason = "Landlock exists on Linux only"
	return nil
}
