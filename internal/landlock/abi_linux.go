package landlock

import (
	"fmt"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// ABI asks the kernel for its Landlock ABI. It returns 0 and why where Landlock
// cannot be used; the error wraps the errno. A kernel newer than MaxABI reports its
// own number.
func ABI() (int, error) {
	abi, err := ll.LandlockGetABIVersion()
	switch err {
	case nil:
		return abi, nil
	case unix.ENOSYS:
		return 0, fmt.Errorf("this kernel is built without Landlock (%w); Linux 5.13 and later can have CONFIG_SECURITY_LANDLOCK", errno("ENOSYS", err))
	case unix.EOPNOTSUPP:
		return 0, fmt.Errorf("the kernel did not enable Landlock at boot (%w); add landlock to the kernel's lsm= list", errno("EOPNOTSUPP", err))
	}
	return 0, fmt.Errorf("cannot ask for Landlock's ABI: %w (a container's own system-call filter can refuse the call)", err)
}

// namedErrno shows the constant's name, which people search for, instead of the
// C library's sentence.
type namedErrno struct {
	name string
	err  error
}

func errno(name string, err error) error { return namedErrno{name, err} }

func (e namedErrno) Error() string { return e.name }
func (e namedErrno) Unwrap() error { return e.err }
