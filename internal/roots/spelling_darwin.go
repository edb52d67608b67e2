package roots

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of <sys/syscall.h>: package unix has no wrapper that takes these requests.
const (
	sysFcntl         = 92
	sysGetattrlistat = 476
)

// pathOfFD is the kernel's own path of what is open: F_GETPATH of fcntl(2), the path
// that a Seatbelt rule is compared with (vn_getpath in both cases).
func pathOfFD(fd int) (string, error) {
	var buf [1024]byte // MAXPATHLEN of <sys/param.h>, which F_GETPATH asks for
	if _, _, errno := unix.Syscall(sysFcntl, uintptr(fd), unix.F_GETPATH, uintptr(unsafe.Pointer(&buf[0]))); errno != 0 {
		return "", fmt.Errorf("cannot ask for the path of a descriptor: %w", errno)
	}
	path, _, ended := strings.Cut(string(buf[:]), "\x00")
	if !ended || !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("the path of a descriptor is %q", path)
	}
	return path, nil
}

// nameOnDisk is the name of an entry as its directory holds it, whatever spelling found
// it. Nothing is opened: opening a device or a fifo has effects.
func nameOnDisk(parent int, name string) (string, error) {
	p, err := unix.BytePtrFromString(name)
	if err != nil {
		return "", err
	}
	list := unix.Attrlist{Bitmapcount: unix.ATTR_BIT_MAP_COUNT, Commonattr: unix.ATTR_CMN_NAME}
	var buf [12 + 4*256]byte // the head, and NAME_MAX characters of UTF-8 with a NUL
	_, _, errno := unix.Syscall6(sysGetattrlistat, uintptr(parent), uintptr(unsafe.Pointer(p)),
		uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), unix.FSOPT_NOFOLLOW)
	switch errno {
	case 0:
		return nameAttribute(buf[:])
	case unix.ENOTSUP, unix.EINVAL: // a file system without attributes: /dev, some networks
		return name, nil
	}
	return "", fmt.Errorf("cannot ask for the name of %s on disk: %w", show(name), errno)
}

// KernelPath is the kernel's own path of something that exists and that this caller can
// read. Links are followed.
func KernelPath(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("cannot open %s: %w", show(path), err)
	}
	defer unix.Close(fd)
	return pathOfFD(fd)
}
