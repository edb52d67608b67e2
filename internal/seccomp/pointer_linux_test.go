package seccomp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func uintptrOf(p *unix.SockFprog) uintptr { return uintptr(unsafe.Pointer(p)) }
