/* SPDX-License-Identifier: MIT */
/*
 * inject_kinds.h - the kinds of calls that inject.c and inject_uring.c let
 * fail, each with the errors that are tried.
 */
#ifndef TEST_FAULTS_INJECT_KINDS_H
#define TEST_FAULTS_INJECT_KINDS_H

#include "test/faults/inject.h"

#define MEMORY \
	{ \
		ENOMEM \
	}
#define OPENS \
	{ \
		EINTR, EMFILE, ENFILE, ENOMEM, EIO \
	}
#define READS \
	{ \
		EINTR, EIO, EAGAIN, INJECT_SHORT \
	}
#define WRITES \
	{ \
		EINTR, ENOSPC, EIO, INJECT_SHORT \
	}
#define LOOKS \
	{ \
		ENOMEM, EIO \
	}
#define MAKES_FD \
	{ \
		EMFILE, ENFILE, ENOMEM \
	}

/* The kinds of calls, each with the errors that are tried. */
#define KINDS(X) \
	X(malloc, MEMORY) \
	X(calloc, MEMORY) \
	X(realloc, MEMORY) \
	X(aligned_alloc, MEMORY) \
	X(strdup, MEMORY) \
	X(strndup, MEMORY) \
	X(asprintf, MEMORY) \
	X(open_memstream, MEMORY) \
	X(realpath, LOOKS) \
	X(open, OPENS) \
	X(openat, OPENS) \
	X(fopen, OPENS) \
	X(opendir, OPENS) \
	X(fdopendir, MEMORY) \
	X(readdir, { EIO }) \
	X(read, READS) \
	X(pread, READS) \
	X(preadv2, READS) \
	X(write, WRITES) \
	X(pwrite, WRITES) \
	X(close, { EINTR, EIO }) \
	X(fstat, LOOKS) \
	X(stat, LOOKS) \
	X(lstat, LOOKS) \
	X(fstatat, LOOKS) \
	X(mkdir, { ENOSPC, EIO }) \
	X(rename, { ENOSPC, EIO }) \
	X(mkostemp, { ENOSPC, EIO, EMFILE }) \
	X(unlink, { EIO }) \
	X(ftruncate, { EINTR, ENOSPC, EIO }) \
	X(fallocate, { EINTR, ENOSPC, ENOMEM }) \
	X(memfd_create, MAKES_FD) \
	X(eventfd, MAKES_FD) \
	X(mmap, MEMORY) \
	X(mprotect, MEMORY) \
	X(madvise, { ENOMEM, EAGAIN, EIO }) \
	X(fcntl, { EMFILE, EINTR, ENOLCK }) \
	X(socket, MAKES_FD) \
	X(bind, { ENOMEM, EIO }) \
	X(listen, { ENOMEM }) \
	X(connect, { EINTR, EAGAIN, ENOMEM }) \
	X(accept4, { EINTR, EMFILE, ENFILE, ENOMEM, ECONNABORTED }) \
	X(sendmsg, { EINTR, EAGAIN, ENOMEM, EPIPE }) \
	X(recvmsg, { EINTR, EAGAIN, ENOMEM, ECONNRESET }) \
	X(recv, { EINTR, EAGAIN, ECONNRESET }) \
	X(getsockopt, { ENOMEM }) \
	X(setsockopt, { ENOMEM }) \
	X(poll, { EINTR, ENOMEM }) \
	X(getrandom, { EINTR }) \
	X(pthread_create, { EAGAIN }) \
	X(getdents64, { EINTR, EIO, ENOMEM }) \
	X(syscall, { EINTR, EMFILE, ENOMEM }) \
	X(io_uring_queue_init, { ENOMEM, EMFILE, EPERM }) \
	X(io_uring_submit, { EINTR, EAGAIN, EBUSY, ENOMEM }) \
	X(io_uring_wait, { EINTR, EAGAIN, EBUSY, ENOMEM }) \
	X(io_uring_open, OPENS) \
	X(io_uring_read, { EINTR, EIO, EAGAIN, ENOMEM, INJECT_SHORT })

#define NUMBER(name, ...) KIND_##name,
enum inject_kind { KINDS(NUMBER) INJECT_KINDS };
#undef NUMBER

/* The errno, or INJECT_SHORT, that this call fails with; 0: it doesn't. */
int inject_hit(enum inject_kind kind);

#endif
