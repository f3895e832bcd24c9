/* SPDX-License-Identifier: MIT */
/*
 * socket.c - unix sockets: listening, and packets with descriptors by recvmsg()
 * and sendmsg().
 */
#include "wire/socket.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"

int tsi_socket_listen(const char *path, int type, int backlog)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int s, saved;

	if (strlen(path) >= sizeof(sa.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(sa.sun_path, path);
	s = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s < 0)
		return -1;
	if ((!unlink(path) || errno == ENOENT) &&
	    !bind(s, (struct sockaddr *)&sa, sizeof(sa)) && !listen(s, backlog))
		return s;
	saved = errno;
	close(s);
	errno = saved;
	return -1;
}

void tsi_socket_packet_close(struct tsi_socket_packet *p)
{
	for (unsigned i = 0; i < p->nfds; i++) {
		if (p->fd[i] >= 0)
			close(p->fd[i]);
		p->fd[i] = -1;
	}
}

/* Keep the descriptors of one packet; those beyond our array are closed. */
static void keep_fds(struct msghdr *h, struct tsi_socket_packet *p)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (p->nfds < TSI_FDPASS_FDS)
				p->fd[p->nfds++] = fd;
			else
				close(fd);
		}
	}
}

int tsi_socket_receive(int sock, unsigned max, struct tsi_socket_packet *p)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(TSI_FDPASS_FDS * sizeof(int))];
	} control;
	struct iovec iov = { p->bytes, sizeof(p->bytes) };
	struct msghdr h = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_LEN(max * sizeof(int)),
	};
	struct rlimit limit = { 0 };
	ssize_t n;

	p->nfds = 0;
	do
		n = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return TSOCK_EAGAIN;
	if (n < 0)
		return tsi_err(TSOCK_ELOST,
			       "read from the descriptor socket: %s",
			       strerror(errno));
	keep_fds(&h, p);
	if (n == 0 || (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		tsi_socket_packet_close(p);
	if (n == 0)
		return tsi_err(TSOCK_ELOST,
			       "the peer closed the descriptor socket");
	if ((h.msg_flags & MSG_CTRUNC) && p->nfds < max) {
		getrlimit(RLIMIT_NOFILE, &limit);
		return tsi_err(TSOCK_ESYS,
			       "not all descriptors could be received: the "
			       "descriptor limit (%llu) is too low, raise it: "
			       "ulimit -n",
			       (unsigned long long)limit.rlim_cur);
	}
	if (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return tsi_err(TSOCK_EPROTO, "a packet on the descriptor "
					     "socket is too long");
	p->len = (size_t)n;
	return 0;
}

ssize_t tsi_socket_send(int sock, const uint8_t *bytes, size_t len,
			const int *fds, unsigned nfds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(TSI_FDPASS_FDS * sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (nfds) {
		struct cmsghdr *c;

		h.msg_control = control.bytes;
		h.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	do
		n = sendmsg(sock, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n;
}
