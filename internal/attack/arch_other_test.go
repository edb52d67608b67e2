//go:build linux && !amd64

package attack

const sysIopl = ^uintptr(0) // no such call: ENOSYS
