// Package seccomp holds the system-call filters that stage 2 installs on itself
// just before it becomes the command, as BPF instructions that were generated
// ahead of time (see gen), and installs them.
//
// Up to four programs are stacked; the kernel takes the strictest answer:
//
//   - guard: system calls of a foreign architecture (int 0x80 on x86-64, AArch32
//     on arm64) and of x32 get ENOSYS, because the numbers in the other
//     programs mean something else there; the ioctls TIOCSTI and TIOCLINUX, which
//     type into the terminal that the helper may share with the command, get EPERM.
//   - left: a set-user-ID bit for a file gets EPERM, and openat2 and io_uring_setup, by
//     which it could be given unseen, ENOSYS, and so does clone3, which could start a
//     process outside the execution's cgroup (CLONE_INTO_CGROUP); lowering the limit of core files, which
//     would let a crash start the host's handler of core_pattern, is answered with
//     success and does nothing.
//   - hardening: the kernel keyrings, bpf, perf_event_open, userfaultfd, kexec and
//     module loading get EPERM; with spec.Seccomp.DenyTrace so do ptrace,
//     process_vm_readv, process_vm_writev and pidfd_getfd.
//   - net (spec.Seccomp.DenyNet): socket and socketpair give EPERM for every domain
//     but AF_UNIX.
//
// What it does not protect: a filter sees numbers, never memory behind a pointer,
// so no path or address is judged here, and of clone3 no flag. A socket or an io_uring that
// the command inherits or is handed over an AF_UNIX socket keeps working. AF_UNIX
// itself stays open: which sockets can be reached is the mounts' and Landlock's
// business. clone, unshare, mount and setns are left to bubblewrap. clone3 is not
// answered with EPERM: the C library falls back to clone on ENOSYS only.
package seccomp
