package probe

import (
	"context"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/host"
	"sandboxd/internal/landlock"
)

func fill(ctx context.Context, f *host.Facts, o Options) error {
	path, err := FindBwrap(o.Bwrap)
	if err != nil {
		return err
	}
	kernel(f)
	f.Bwrap = bubblewrap(ctx, path, o)
	return nil
}

// kernel asks the kernel alone.
func kernel(f *host.Facts) {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		f.TotalRAM = uint64(info.Totalram) * uint64(info.Unit)
	}
	abi, err := landlock.ABI()
	f.LandlockABI = abi
	if err != nil {
		f.LandlockABI, f.LandlockReason = 0, err.Error()
	}
	f.Seccomp = seccompFilters()
}

// seccompFilters asks whether this kernel has filters that can answer with an errno
// (SECCOMP_GET_ACTION_AVAIL, seccomp(2)); it changes nothing.
func seccompFilters() bool {
	const getActionAvail = 2
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, getActionAvail, 0, uintptr(unsafe.Pointer(&action)))
	return errno == 0
}
