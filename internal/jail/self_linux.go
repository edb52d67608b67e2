package jail

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// self is what a jail executes as stage 2: the small program that this binary carries,
// from memory, or this binary itself. A host may refuse to execute what is in no file
// (vm.memfd_noexec, an LSM): that shows at the first jail, which is then built anew.
type self struct {
	whole *os.File
	small *os.File // nil: none is carried, or there cannot be one
	// works: a stage 2 has begun once. fails: the small one is not tried again.
	works, fails atomic.Bool
}

func (s *self) open(carried string) (err error) {
	if s.whole, err = os.Open("/proc/self/exe"); err != nil {
		return fmt.Errorf("cannot open the helper's own image: %w; is /proc mounted?", err)
	}
	if carried != "" {
		s.small, _ = unpack(carried) // without it stage 2 only takes longer
	}
	return nil
}

func unpack(carried string) (*os.File, error) {
	fd, err := unix.MemfdCreate("stage2", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3 each is executable
		fd, err = unix.MemfdCreate("stage2", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	return sealed(fd, "stage2", unsafe.Slice(unsafe.StringData(carried), len(carried)))
}

// forget gives back the memory of what was read of this binary's own file (RssFile,
// proc_pid_status(5)), and only of that: it comes back if it is read again (madvise(2),
// MADV_DONTNEED), where anything else would be lost.
func forget(embedded string) {
	page := os.Getpagesize()
	from := uintptr(unsafe.Pointer(unsafe.StringData(embedded)))
	skip := (page - int(from%uintptr(page))) % page
	if whole := (len(embedded) - skip) / page * page; whole > 0 {
		_ = unix.Madvise(unsafe.Slice(unsafe.StringData(embedded[skip:]), whole), unix.MADV_DONTNEED)
	}
}

// image is what to execute now.
func (s *self) image() *os.File {
	if s.small != nil && !s.fails.Load() {
		return s.small
	}
	return s.whole
}

// imagePath is what bubblewrap executes: the descriptor that childFiles hands over.
var imagePath = "/proc/self/fd/" + strconv.Itoa(spec.ImageFD)

// distrust says, of a jail that failed before stage 2 began, whether that was because the
// small one could not be executed, which never began here: it is not tried again.
func (s *self) distrust(failed string) bool {
	return s.small != nil && !s.works.Load() && strings.Contains(failed, imagePath) && !s.fails.Swap(true)
}
