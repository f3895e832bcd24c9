/* SPDX-License-Identifier: MIT */
/*
 * send_fds.h - a packet with as many descriptors as the kernel lets through.
 */
#ifndef TEST_LIB_SEND_FDS_H
#define TEST_LIB_SEND_FDS_H

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define SEND_FDS_MAX 253

/* What sendmsg() returned; n is SEND_FDS_MAX at most. */
static inline ssize_t send_fds(int sock, const void *bytes, size_t len,
			       const int *fds, unsigned n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(SEND_FDS_MAX * sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (n) {
		struct cmsghdr *c;

		h.msg_control = control.bytes;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	return sendmsg(sock, &h, MSG_NOSIGNAL);
}

#endif
