//go:build linux

package attack

import "golang.org/x/sys/unix"

const sysIopl = unix.SYS_IOPL
