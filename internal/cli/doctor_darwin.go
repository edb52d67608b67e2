package cli

import (
	"context"

	"golang.org/x/sys/unix"

	"sandboxd/internal/doctor"
	"sandboxd/internal/host/probe"
	"sandboxd/internal/seatbelt"
)

// surroundings tries whether a profile can be applied: inside another sandbox it
// cannot.
func surroundings(f *doctor.Facts, _ options, _ System) {
	f.Release, _ = unix.Sysctl("kern.osrelease")
	f.Seatbelt, f.NoSeatbelt = seatbelt.Classify(probe.TrySeatbelt(context.Background()))
}
