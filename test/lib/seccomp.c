/* SPDX-License-Identifier: MIT */
/*
 * seccomp.c - this process under a kernel that refuses system calls.
 */
#include "test/lib/seccomp.h"

bool seccomp_install(struct sock_filter *code, size_t n)
{
	struct sock_fprog prog = { (unsigned short)n, code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

bool seccomp_forbid(long nr, int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return seccomp_install(code, sizeof(code) / sizeof(code[0]));
}
