/*
 * witness NAME...: really makes each named call and prints one line "NAME ERRNO"
 * (0: it succeeded, 1000 + N: signal N ended it, as on a kernel without the 32-bit
 * gate). Exit status 0 if every name is known, 2 otherwise. With
 * -l it lists the names. "done" is printed last, so that a reader can tell a
 * witness that died from one that was denied nothing.
 *
 * It judges nothing: the caller runs it once where the calls are allowed (the
 * control) and once where they must be refused, and compares. Nothing it does
 * changes the host: calls that could (kexec, modules) get arguments that the
 * kernel refuses after its permission check.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>

#ifndef AF_VSOCK
#define AF_VSOCK 40
#endif
#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

/* Result of a call that gives a descriptor. */
static int fd_result(long fd)
{
	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
}

static int result(long r) { return r < 0 ? errno : 0; }

static int inet(void) { return fd_result(socket(AF_INET, SOCK_STREAM, 0)); }
static int inet_udp(void) { return fd_result(socket(AF_INET, SOCK_DGRAM, 0)); }
static int inet6(void) { return fd_result(socket(AF_INET6, SOCK_STREAM, 0)); }
static int netlink(void) { return fd_result(socket(AF_NETLINK, SOCK_RAW, 0)); }
static int packet(void) { return fd_result(socket(AF_PACKET, SOCK_RAW, 0)); }
static int vsock(void) { return fd_result(socket(AF_VSOCK, SOCK_STREAM, 0)); }
static int unix_socket(void) { return fd_result(socket(AF_UNIX, SOCK_STREAM, 0)); }

static int pair(int domain)
{
	int s[2];
	if (socketpair(domain, SOCK_STREAM, 0, s) < 0)
		return errno;
	close(s[0]);
	close(s[1]);
	return 0;
}
static int unix_pair(void) { return pair(AF_UNIX); }
/* EOPNOTSUPP where sockets of the domain are allowed. */
static int inet_pair(void) { return pair(AF_INET); }

/* A domain with a bit above the 32 that the kernel looks at. */
static int inet_high(void) { return fd_result(syscall(SYS_socket, (1UL << 32) | AF_INET, SOCK_STREAM, 0)); }
static int unix_high(void) { return fd_result(syscall(SYS_socket, (1UL << 32) | AF_UNIX, SOCK_STREAM, 0)); }

static int io_uring(void)
{
	static char params[256];
	memset(params, 0, sizeof params);
	return fd_result(syscall(SYS_io_uring_setup, 4, params));
}

/* A set-user-ID bit, by each way to give a file its mode. The file is the caller's own
 * and goes again. */
static char dir[64], file[80];
static int own(void)
{
	strcpy(dir, "/tmp/witness-XXXXXX");
	if (!mkdtemp(dir))
		return errno;
	snprintf(file, sizeof file, "%s/f", dir);
	return 0;
}
static int gone(int e)
{
	unlink(file);
	rmdir(dir);
	return e;
}
static int moded(long (*call)(int fd))
{
	int e, fd;
	if ((e = own()))
		return e;
	if ((fd = open(file, O_CREAT | O_RDWR, 0700)) < 0)
		return gone(errno);
	e = result(call(fd));
	close(fd);
	return gone(e);
}
static int made(long (*call)(void))
{
	int e = own();
	long fd;
	if (e)
		return e;
	fd = call();
	e = result(fd);
	if (fd > 0)
		close((int)fd);
	return gone(e);
}
static long call_fchmodat(int fd) { (void)fd; return syscall(SYS_fchmodat, AT_FDCWD, file, 04700); }
static long call_fchmodat2(int fd) { (void)fd; return syscall(SYS_fchmodat2, AT_FDCWD, file, 04700, 0); }
static long call_fchmod(int fd) { return syscall(SYS_fchmod, fd, 04700); }
static long call_sgid(int fd) { return syscall(SYS_fchmod, fd, 02700); }
static long call_libc(int fd) { (void)fd; return chmod(file, 04700); }
static long call_unused(int fd) { (void)fd; return close((int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY, 04700)); }
static long call_openat(void) { return syscall(SYS_openat, AT_FDCWD, file, O_CREAT | O_RDWR, 04700); }
static long call_tmpfile(void) { return syscall(SYS_openat, AT_FDCWD, dir, O_TMPFILE | O_RDWR, 04700); }
static long call_mknodat(void) { return syscall(SYS_mknodat, AT_FDCWD, file, S_IFREG | 04700, 0); }
static long call_openat2(void)
{
	uint64_t how[3] = {O_CREAT | O_RDWR, 04700, 0};
	return syscall(SYS_openat2, AT_FDCWD, file, how, sizeof how);
}
static int chmod_suid(void) { return moded(call_libc); }
static int fchmod_suid(void) { return moded(call_fchmod); }
static int fchmodat_suid(void) { return moded(call_fchmodat); }
static int fchmodat2_suid(void) { return moded(call_fchmodat2); }
static int chmod_sgid(void) { return moded(call_sgid); }
static int open_unused(void) { return moded(call_unused); }
static int open_suid(void) { return made(call_openat); }
static int tmpfile_suid(void) { return made(call_tmpfile); }
static int mknod_suid(void) { return made(call_mknodat); }
static int openat2_suid(void) { return made(call_openat2); }
#ifdef __x86_64__
static long call_chmod(int fd) { (void)fd; return syscall(SYS_chmod, file, 04700); }
static long call_open(void) { return syscall(SYS_open, file, O_CREAT | O_RDWR, 04700); }
static long call_creat(void) { return syscall(SYS_creat, file, 04700); }
static long call_mknod(void) { return syscall(SYS_mknod, file, S_IFREG | 04700, 0); }
static int chmod_call(void) { return moded(call_chmod); }
static int open_call(void) { return made(call_open); }
static int creat_call(void) { return made(call_creat); }
static int mknod_call(void) { return made(call_mknod); }
#endif
static int limit_of_files(void)
{
	struct rlimit l;
	return getrlimit(RLIMIT_NOFILE, &l) < 0 || setrlimit(RLIMIT_NOFILE, &l) < 0 ? errno : 0;
}

/* The numbers of i386 (asm/unistd_32.h), by the 32-bit gate. */
#ifdef __x86_64__
static int gate(long nr, long a, long b, long c)
{
	long r;
	__asm__ volatile("int $0x80" : "=a"(r)
			 : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	r = (int)r;
	return r < 0 ? (int)-r : 0;
}
/* In a child: a kernel without the gate raises SIGSEGV. */
static int int80(long nr, long a, long b, long c)
{
	int status;
	pid_t pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(gate(nr, a, b, c));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
static int int80_getpid(void) { return int80(20, 0, 0, 0); }
static int int80_socket(void) { return int80(359, AF_INET, SOCK_STREAM, 0); }
static int int80_socketcall(void)
{
	uint32_t *args = mmap(0, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (args == MAP_FAILED)
		return errno;
	args[0] = AF_INET;
	args[1] = SOCK_STREAM;
	args[2] = 0;
	return int80(102, 1 /* SYS_SOCKET */, (long)args, 0);
}
static int int80_keyctl(void) { return int80(288, 0 /* GET_KEYRING_ID */, -2, 0); }
static int x32_getpid(void) { return result(syscall(0x40000000 + SYS_getpid)); }
static int x32_socket(void) { return fd_result(syscall(0x40000000 + SYS_socket, AF_INET, SOCK_STREAM, 0)); }
#endif

/* A terminal of its own is made the controlling one of a child, so that TIOCSTI
 * needs no privilege. */
static int terminal_ioctl(unsigned long request, char byte)
{
	int status, master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return errno;
	const char *name = ptsname(master);
	pid_t pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0) {
		int tty;
		setsid();
		if ((tty = open(name, O_RDWR)) < 0)
			_exit(errno);
		ioctl(tty, TIOCSCTTY, 0);
		_exit(result(syscall(SYS_ioctl, tty, request, &byte)));
	}
	waitpid(pid, &status, 0);
	close(master);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
static int tiocsti(void) { return terminal_ioctl(TIOCSTI, 'x'); }
static int tiocsti_high(void) { return terminal_ioctl((1UL << 32) | TIOCSTI, 'x'); }
/* ENOTTY where it is allowed: the terminal is no virtual console. */
static int tioclinux(void) { return terminal_ioctl(TIOCLINUX, 3); }
static int tioclinux_high(void) { return terminal_ioctl((1UL << 32) | TIOCLINUX, 3); }
static int tiocgwinsz(void)
{
	struct winsize w;
	int r, master = posix_openpt(O_RDWR | O_NOCTTY);
	if (master < 0)
		return errno;
	r = result(ioctl(master, TIOCGWINSZ, &w));
	close(master);
	return r;
}

static int add_key(void)
{
	return result(syscall(SYS_add_key, "user", "witness", "x", 1, -1 /* thread keyring */));
}
static int keyctl(void) { return result(syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -1, 1)); }
/* ENOKEY where it is allowed. */
static int request_key(void) { return result(syscall(SYS_request_key, "user", "witness-none", 0, 0)); }

static int bpf(void)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = attr.value_size = 4;
	attr.max_entries = 1;
	return fd_result(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}
static int perf(void)
{
	struct perf_event_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.size = sizeof attr;
	attr.config = PERF_COUNT_SW_TASK_CLOCK;
	attr.exclude_kernel = attr.exclude_hv = 1;
	return fd_result(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}
static int userfaultfd(void) { return fd_result(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* USER_MODE_ONLY */)); }

/* With privilege: EINVAL, EBADF, EFAULT or ENOEXEC, ENOENT. Without: EPERM. */
static int kexec_load(void) { return result(syscall(SYS_kexec_load, 0, 1, 0, 0xffff)); }
static int kexec_file_load(void)
{
#ifdef SYS_kexec_file_load
	return result(syscall(SYS_kexec_file_load, -1, -1, 0, 0, 0));
#else
	return ENOSYS;
#endif
}
static int init_module(void) { return result(syscall(SYS_init_module, 0, 0, "")); }
static int finit_module(void) { return result(syscall(SYS_finit_module, -1, "", 0)); }
static int delete_module(void) { return result(syscall(SYS_delete_module, "witness_none", O_NONBLOCK)); }

static int traceme(void)
{
	int status;
	pid_t pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, 0, 0) < 0 ? errno : 0);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
static long vm(long nr)
{
	char from[1] = {1}, to[1] = {0};
	struct iovec local = {to, 1}, remote = {from, 1};
	return syscall(nr, getpid(), &local, 1, &remote, 1, 0);
}
static int vm_readv(void) { return result(vm(SYS_process_vm_readv)); }
static int vm_writev(void) { return result(vm(SYS_process_vm_writev)); }
static int pidfd_getfd(void)
{
	int r, self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (self < 0)
		return errno;
	r = fd_result(syscall(SYS_pidfd_getfd, self, self, 0));
	close(self);
	return r;
}
/* EINVAL where it is allowed: the size is wrong on purpose. Never EPERM. */
static int clone3(void) { return result(syscall(SYS_clone3, 0, 0)); }
static int fork_wait(void)
{
	int status;
	pid_t pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(0);
	waitpid(pid, &status, 0);
	return 0;
}

static const struct {
	const char *name;
	int (*call)(void);
} witnesses[] = {
	{"inet", inet}, {"inet-udp", inet_udp}, {"inet6", inet6}, {"netlink", netlink},
	{"packet", packet}, {"vsock", vsock}, {"inet-high", inet_high}, {"inet-pair", inet_pair},
	{"unix", unix_socket}, {"unix-high", unix_high}, {"unix-pair", unix_pair},
	{"io_uring", io_uring},
	{"chmod-suid", chmod_suid}, {"fchmod-suid", fchmod_suid}, {"fchmodat-suid", fchmodat_suid},
	{"fchmodat2-suid", fchmodat2_suid}, {"chmod-sgid", chmod_sgid}, {"open-mode-unused", open_unused},
	{"open-suid", open_suid}, {"open-tmpfile-suid", tmpfile_suid}, {"mknod-suid", mknod_suid},
	{"openat2-suid", openat2_suid}, {"limit-of-files", limit_of_files},
#ifdef __x86_64__
	{"int80-getpid", int80_getpid}, {"int80-socket", int80_socket},
	{"int80-socketcall", int80_socketcall}, {"int80-keyctl", int80_keyctl},
	{"chmod-call", chmod_call}, {"open-call", open_call}, {"creat-call", creat_call}, {"mknod-call", mknod_call},
	{"x32-getpid", x32_getpid}, {"x32-socket", x32_socket},
#endif
	{"tiocsti", tiocsti}, {"tiocsti-high", tiocsti_high},
	{"tioclinux", tioclinux}, {"tioclinux-high", tioclinux_high}, {"tiocgwinsz", tiocgwinsz},
	{"add_key", add_key}, {"keyctl", keyctl}, {"request_key", request_key},
	{"bpf", bpf}, {"perf_event_open", perf}, {"userfaultfd", userfaultfd},
	{"kexec_load", kexec_load}, {"kexec_file_load", kexec_file_load},
	{"init_module", init_module}, {"finit_module", finit_module}, {"delete_module", delete_module},
	{"ptrace", traceme}, {"process_vm_readv", vm_readv}, {"process_vm_writev", vm_writev},
	{"pidfd_getfd", pidfd_getfd}, {"clone3", clone3}, {"fork", fork_wait},
};

enum { count = sizeof witnesses / sizeof witnesses[0] };

static int run(const char *name)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(witnesses[i].name, name)) {
			int e = witnesses[i].call();
			printf("%s %d\n", name, e);
			fflush(stdout);
			return 0;
		}
	fprintf(stderr, "witness: no call named %s\n", name);
	return -1;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "-l")) {
		for (int i = 0; i < count; i++)
			puts(witnesses[i].name);
		return 0;
	}
	for (int i = 1; i < argc; i++)
		if (run(argv[i]) < 0)
			return 2;
	puts("done");
	return 0;
}
