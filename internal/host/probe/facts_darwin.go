package probe

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
)

func fill(_ context.Context, f *host.Facts, _ Options) error {
	f.Bwrap = host.Bwrap{State: host.Absent, Reason: "bubblewrap exists on Linux only"}
	f.LandlockReason = "Landlock exists on Linux only"
	if ram, err := unix.SysctlUint64("hw.memsize"); err == nil {
		f.TotalRAM = ram
	}
	// What xcode-select(1) set; the tools in /usr/bin are stubs that go there.
	if dir, err := os.Readlink("/var/db/xcode_select_link"); err == nil && filepath.IsAbs(dir) {
		f.DeveloperDir = dir
	}
	return nil
}
