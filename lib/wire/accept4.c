/* SPDX-License-Identifier: MIT */
/*
 * accept4.c - accept4(2) for ZeroMQ, which aborts the process on EMFILE, and
 * where the kernel has no memory for a connection.
 *
 * ZeroMQ's thread accepts as fast as connections arrive, and nothing bounds how
 * many it accepts before another thread runs and stops it.  On ENFILE it only
 * leaves the connection waiting.  In a program that is linked with this file,
 * ZeroMQ calls this function in place of the C library's; libtsock.so doesn't
 * export it, and a sanitizer's accept4() comes before this one.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int
accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	int s = (int)syscall(SYS_accept4, fd, address, len, flags);

	if (s < 0 && (errno == EMFILE || errno == ENOMEM || errno == ENOBUFS))
		errno = ENFILE;
	return s;
}
