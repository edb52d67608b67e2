package jail

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandboxd/internal/stage2/spec"
)

// self is what a jail executes as stage 2: the small program that this binary carries,
// from memory, or this binary itself. A host may refuse to execute what is in no file, or
// kill what does (vm.memfd_noexec, an LSM, a monitor), from the start or from some moment
// on: the jail in which that shows is built anew.
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

// image is what to execute now, and whether that is the small one.
func (s *self) image() (f *os.File, small bool) {
	if s.small != nil && !s.fails.Load() {
		return s.small, true
	}
	return s.whole, false
}

// imagePath is what bubblewrap executes: the descriptor that childFiles hands over.
var imagePath = "/proc/self/fd/" + strconv.Itoa(spec.ImageFD)

// errSmall is for a process that could not be started because of the small program.
var errSmall = errors.New("the small stage 2 is not executed")

// passing are failures of an execve(2) that say nothing about what is executed.
var passing = []string{unix.EAGAIN.Error(), unix.ENOMEM.Error(), unix.EMFILE.Error(), unix.ENFILE.Error()}

// refused says, of a process in which stage 2 never began, whether that was because it was
// the small one, which is not tried again then: the failure names it, or, before any began
// here, the kernel or a monitor killed it. Nothing of a command can have run, and none of
// the words can be a command's.
func (s *self) refused(p *process, state *os.ProcessState, failed string) bool {
	named := strings.Contains(failed, imagePath+":") && !slices.ContainsFunc(passing, func(text string) bool {
		return strings.Contains(strings.ToLower(failed), text)
	})
	if !p.small || !named && (s.works.Load() || !killed(state)) {
		return false
	}
	s.fails.Store(true)
	return true
}

// killed takes an exit status that bubblewrap relays for the signal that it stands for.
func killed(state *os.ProcessState) bool {
	if state == nil {
		return false
	}
	ws, ok := state.Sys().(syscall.WaitStatus)
	return ok && (ws.Signaled() || ws.ExitStatus() > 128)
}
