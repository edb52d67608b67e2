/*
 * deny ERRNO NUMBER... -- COMMAND...: runs COMMAND on a kernel that answers the system
 * calls NUMBER with ERRNO, as one without the feature would; NUMBER!VALUE but where the
 * first argument (its lower half) is VALUE. A seccomp filter does it,
 * which every process below inherits. Exit status 125 if it cannot.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter code[64];
	unsigned short n = 0;
	int i, error = argc > 1 ? atoi(argv[1]) : 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (i = 2; i < argc && strcmp(argv[i], "--") && n < 56; i++) {
		const char *but = strchr(argv[i], '!');

		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[i]), 0, but ? 3 : 1);
		if (but) {
			code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args));
			code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)strtoul(but + 1, NULL, 10), 1, 0);
		}
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA));
		if (but)
			code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (i + 1 >= argc || strcmp(argv[i], "--")) {
		fprintf(stderr, "usage: deny ERRNO NUMBER... -- COMMAND...\n");
		return 125;
	}
	struct sock_fprog program = {.len = n, .filter = code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("deny");
		return 125;
	}
	execvp(argv[i + 1], argv + i + 1);
	perror(argv[i + 1]);
	return 125;
}
