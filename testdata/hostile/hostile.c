/*
 * hostile NONCE EFFECT KEY=VALUE...: a hostile native program. It announces itself
 * ("begin NONCE"), performs the effects that it may, tries everything that it must not
 * and announces its end ("end NONCE"). Each line is "KEY ok" or "KEY denied REASON".
 * It judges nothing: it is run where all of it is allowed, where everything is granted,
 * and in the jail, and the answers are compared.
 *
 *   read append create replace mkdir symlink chmod unlink = PATH
 *   unix tcp = ADDRESS     connect to a path socket, or to 127.0.0.1:ADDRESS
 *   env = NAME
 *   kill = PID             signal 0 to a process outside
 *   mount unshare chroot mknod ptrace1 mem1 fd1 setns = anything
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

static const char *nonce;

static int put(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | flags, 0644);
	if (fd < 0)
		return -1;
	if (write(fd, nonce, strlen(nonce)) < 0) {
		close(fd);
		return -1;
	}
	return close(fd);
}

/* A read prints what it found, so that a secret shows wherever it comes out. */
static int get(const char *path)
{
	char text[4096];
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	if (n < 0)
		return -1;
	printf("found %.*s\n", (int)n, text);
	return 0;
}

static int replace(const char *path)
{
	char other[4096];
	snprintf(other, sizeof other, "%s.new", path);
	return put(other, O_CREAT) ? -1 : rename(other, path);
}

static int call(int family, const struct sockaddr *to, socklen_t size)
{
	int fd = socket(family, SOCK_STREAM, 0);
	if (fd < 0)
		return -1;
	int r = connect(fd, to, size);
	close(fd);
	return r;
}

static int unix_socket(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
	return call(AF_UNIX, (struct sockaddr *)&to, sizeof to);
}

static int tcp(const char *port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return call(AF_INET, (struct sockaddr *)&to, sizeof to);
}

/* What changes this process for good happens in a child; its errno is the status. */
static int in_child(int (*f)(const char *), const char *value)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(f(value) == 0 ? 0 : (errno ? errno : 255));
	int status = 255 << 8;
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return errno ? -1 : 0;
}

static int do_mount(const char *v)
{
	(void)v;
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ? -1 : mount("none", "/mnt", "tmpfs", 0, NULL);
}
static int do_unshare(const char *v) { (void)v; return unshare(CLONE_NEWUSER); }
static int do_chroot(const char *v) { return chroot(v); }
static int do_mknod(const char *v) { return mknod(v, S_IFCHR | 0600, makedev(1, 3)); }
static int do_setns(const char *v)
{
	int fd = open(v, O_RDONLY);
	return fd < 0 ? -1 : setns(fd, 0);
}
static int do_ptrace(const char *v) { return ptrace(PTRACE_SEIZE, atoi(v), NULL, NULL) ? -1 : 0; }
static int do_mem(const char *v)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", atoi(v));
	int fd = open(path, O_RDWR);
	return fd < 0 ? -1 : close(fd);
}
static int do_getfd(const char *v)
{
	int pidfd = (int)syscall(SYS_pidfd_open, atoi(v), 0);
	return pidfd < 0 || syscall(SYS_pidfd_getfd, pidfd, 0, 0) < 0 ? -1 : 0;
}

static int attempt(const char *key, const char *value)
{
	size_t n = strcspn(key, "0123456789=");
#define IS(name) (n == strlen(name) && !strncmp(key, name, n))
	if (IS("read")) return get(value);
	if (IS("append")) return put(value, O_APPEND);
	if (IS("create")) return put(value, O_CREAT | O_EXCL);
	if (IS("replace")) return replace(value);
	if (IS("mkdir")) return mkdir(value, 0755);
	if (IS("symlink")) return symlink("/etc/passwd", value);
	if (IS("chmod")) return chmod(value, 0777);
	if (IS("unlink")) return unlink(value);
	if (IS("unix")) return unix_socket(value);
	if (IS("tcp")) return tcp(value);
	if (IS("env")) return getenv(value) ? 0 : (errno = ENOENT, -1);
	if (IS("kill")) return kill(atoi(value), 0);
	if (IS("mount")) return in_child(do_mount, value);
	if (IS("unshare")) return in_child(do_unshare, value);
	if (IS("chroot")) return in_child(do_chroot, value);
	if (IS("mknod")) return in_child(do_mknod, value);
	if (IS("setns")) return in_child(do_setns, value);
	if (IS("ptrace")) return in_child(do_ptrace, value);
	if (IS("mem")) return in_child(do_mem, value);
	if (IS("getfd")) return in_child(do_getfd, value);
	errno = EINVAL;
	return -1;
}

static void answer(const char *key, int r)
{
	int n = (int)strcspn(key, "=");
	if (r == 0)
		printf("%.*s ok\n", n, key);
	else
		printf("%.*s denied %s\n", n, key, strerror(errno));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	nonce = argv[1];
	setvbuf(stdout, NULL, _IONBF, 0);
	printf("begin %s\n", nonce);
	answer("effect", put(argv[2], O_CREAT | O_TRUNC));
	for (int i = 3; i < argc; i++) {
		const char *value = strchr(argv[i], '=');
		answer(argv[i], attempt(argv[i], value ? value + 1 : ""));
	}
	printf("end %s\n", nonce);
	return 0;
}
