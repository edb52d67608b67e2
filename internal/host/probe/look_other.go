//go:build !linux

package probe

import (
	"context"

	"sandboxd/internal/host"
)

// Look is Facts without starting anything, which Facts does on Linux only.
func Look(o Options) (host.Facts, error) { return Facts(context.Background(), o) }
