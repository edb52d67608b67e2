package seccomptest

import "syscall"

// Filter is the program that has to refuse a call.
type Filter string

// The filters.
const (
	GuardArch  Filter = "guard (architecture)"
	GuardIoctl Filter = "guard (ioctl)"
	Hardening  Filter = "hardening"
	Trace      Filter = "trace"
	Net        Filter = "net"
	Left       Filter = "left"
	LeftUnseen Filter = "left (behind a pointer)"
	None       Filter = "" // allowed under every filter
)

// Case is one call of the witness.
type Case struct {
	Name   string
	Filter Filter
	Errno  syscall.Errno // what the filter answers
	X86    bool          // exists on x86-64 only
}

// Cases are all calls of the witness. Where Filter is None the call has to give
// the same with and without filters.
var Cases = []Case{
	{"int80-getpid", GuardArch, syscall.ENOSYS, true},
	{"int80-socket", GuardArch, syscall.ENOSYS, true},
	{"int80-socketcall", GuardArch, syscall.ENOSYS, true},
	{"int80-keyctl", GuardArch, syscall.ENOSYS, true},
	{"x32-getpid", GuardArch, syscall.ENOSYS, true},
	{"x32-socket", GuardArch, syscall.ENOSYS, true},
	{"tiocsti", GuardIoctl, syscall.EPERM, false},
	{"tiocsti-high", GuardIoctl, syscall.EPERM, false},
	{"tioclinux", GuardIoctl, syscall.EPERM, false},
	{"tioclinux-high", GuardIoctl, syscall.EPERM, false},

	{"add_key", Hardening, syscall.EPERM, false},
	{"keyctl", Hardening, syscall.EPERM, false},
	{"request_key", Hardening, syscall.EPERM, false},
	{"bpf", Hardening, syscall.EPERM, false},
	{"perf_event_open", Hardening, syscall.EPERM, false},
	{"userfaultfd", Hardening, syscall.EPERM, false},
	{"kexec_load", Hardening, syscall.EPERM, false},
	{"kexec_file_load", Hardening, syscall.EPERM, false},
	{"init_module", Hardening, syscall.EPERM, false},
	{"finit_module", Hardening, syscall.EPERM, false},
	{"delete_module", Hardening, syscall.EPERM, false},

	{"ptrace", Trace, syscall.EPERM, false},
	{"process_vm_readv", Trace, syscall.EPERM, false},
	{"process_vm_writev", Trace, syscall.EPERM, false},
	{"pidfd_getfd", Trace, syscall.EPERM, false},

	{"inet", Net, syscall.EPERM, false},
	{"inet-udp", Net, syscall.EPERM, false},
	{"inet6", Net, syscall.EPERM, false},
	{"netlink", Net, syscall.EPERM, false},
	{"packet", Net, syscall.EPERM, false},
	{"vsock", Net, syscall.EPERM, false},
	{"inet-high", Net, syscall.EPERM, false},
	{"inet-pair", Net, syscall.EPERM, false},
	{"unix-high", Net, syscall.EPERM, false}, // over-denied, see gen

	{"chmod-suid", Left, syscall.EPERM, false},
	{"fchmod-suid", Left, syscall.EPERM, false},
	{"fchmodat-suid", Left, syscall.EPERM, false},
	{"fchmodat2-suid", Left, syscall.EPERM, false},
	{"open-suid", Left, syscall.EPERM, false},
	{"open-tmpfile-suid", Left, syscall.EPERM, false},
	{"mknod-suid", Left, syscall.EPERM, false},
	{"chmod-call", Left, syscall.EPERM, true}, // calls that arm64 does not have
	{"open-call", Left, syscall.EPERM, true},
	{"creat-call", Left, syscall.EPERM, true},
	{"mknod-call", Left, syscall.EPERM, true},
	{"openat2-suid", LeftUnseen, syscall.ENOSYS, false},
	{"io_uring", LeftUnseen, syscall.ENOSYS, false},
	{"clone3", LeftUnseen, syscall.ENOSYS, false},

	{"unix", None, 0, false},
	{"unix-pair", None, 0, false},
	{"tiocgwinsz", None, 0, false},
	{"fork", None, 0, false},
	{"chmod-sgid", None, 0, false},
	{"open-mode-unused", None, 0, false}, // flags that create nothing: no mode is looked at
	{"limit-of-files", None, 0, false},
}
