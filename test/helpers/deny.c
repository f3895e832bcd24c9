/* SPDX-License-Identifier: MIT */
/*
 * deny.c - run a command under a kernel that lacks something.
 *
 *     deny EPERM|ENOSYS|EINVAL|ENOMEM WHAT[,WHAT...] COMMAND...
 *
 * WHAT is a system call below, or "seals": fcntl(F_ADD_SEALS).  A seccomp
 * filter answers those with that error, for the command and all its children,
 * as a container's does.  Exits with 77 where filters are not allowed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SKIP 77
#define RULES_MAX 32

static const struct {
	const char *name;
	unsigned number;
} calls[] = {
	{ "io_uring_setup", SYS_io_uring_setup },
	{ "memfd_create", SYS_memfd_create },
	{ "pidfd_open", SYS_pidfd_open },
	{ "pidfd_send_signal", SYS_pidfd_send_signal },
	{ "fallocate", SYS_fallocate },
	{ "eventfd2", SYS_eventfd2 },
	{ "sched_getaffinity", SYS_sched_getaffinity },
};

static struct sock_filter rule[4 * RULES_MAX + 8];
static unsigned short nrules;

static void add(struct sock_filter f)
{
	rule[nrules++] = f;
}

static void load(size_t offset)
{
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					 (unsigned)offset));
}

static void deny_call(unsigned number, int err)
{
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0,
					 1));
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					 SECCOMP_RET_ERRNO | (unsigned)err));
}

static void deny_seals(int err)
{
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl,
					 0, 4));
	load(offsetof(struct seccomp_data, args[1]));
	add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_ADD_SEALS,
					 0, 1));
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
					 SECCOMP_RET_ERRNO | (unsigned)err));
	load(offsetof(struct seccomp_data, nr));
}

static void deny_one(const char *name, int err)
{
	if (strcmp(name, "seals") == 0) {
		deny_seals(err);
		return;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(name, calls[i].name) == 0) {
			deny_call(calls[i].number, err);
			return;
		}
	}
	fprintf(stderr, "deny: no system call %s here\n", name);
	exit(2);
}

static int errno_of(const char *name)
{
	if (strcmp(name, "EPERM") == 0)
		return EPERM;
	if (strcmp(name, "ENOSYS") == 0)
		return ENOSYS;
	if (strcmp(name, "EINVAL") == 0)
		return EINVAL;
	if (strcmp(name, "ENOMEM") == 0)
		return ENOMEM;
	fprintf(stderr, "deny: no error %s here\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	struct sock_fprog program = { .filter = rule };
	unsigned rules = 0;
	int err;

	if (argc < 4) {
		fprintf(stderr, "usage: deny ERROR WHAT[,WHAT...] COMMAND\n");
		return 2;
	}
	err = errno_of(argv[1]);
	load(offsetof(struct seccomp_data, nr));
	for (char *w = strtok(argv[2], ","); w; w = strtok(NULL, ",")) {
		if (rules++ == RULES_MAX)
			return 2;
		deny_one(w, err);
	}
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	program.len = nrules;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "deny: no seccomp filters here: %s\n",
			strerror(errno));
		return SKIP;
	}
	execvp(argv[3], argv + 3);
	fprintf(stderr, "deny: %s: %s\n", argv[3], strerror(errno));
	return 127;
}
