/* SPDX-License-Identifier: MIT */
/*
 * zmtp_peer.c - a hostile peer on a channel, without libzmq.
 */
#include "test/lib/zmtp_peer.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "test/lib/proc.h"
#include "wire/msg.h"

enum { MORE = 1, LONG = 2, COMMAND = 4 }; /* a frame's flags */

/* Signature, version 3.0, mechanism NULL; no server of it. */
static const uint8_t greeting[64] = { 0xff, 0,    0, 0, 0,   0,   0,   0,
				      1,    0x7f, 3, 0, 'N', 'U', 'L', 'L' };
static const uint8_t ready[] = "\5READY\13Socket-Type\0\0\0\6DEALER";

/* Whether the other side is still there. */
static bool send_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0) {
			need(errno == EPIPE || errno == ECONNRESET);
			return false;
		}
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

static bool send_frame(int fd, const uint8_t *bytes, size_t len, int flags)
{
	uint8_t head[9] = { (uint8_t)flags, (uint8_t)len };
	size_t n = 2;

	if (len > 255) {
		head[0] |= LONG;
		for (n = 1; n < sizeof(head); n++)
			head[n] = (uint8_t)(len >> (64 - 8 * n));
	}
	return send_all(fd, head, n) && send_all(fd, bytes, len);
}

static void recv_all(int fd, uint8_t *bytes, size_t len)
{
	while (len) {
		ssize_t n = recv(fd, bytes, len, 0);

		need(n > 0);
		bytes += n;
		len -= (size_t)n;
	}
}

/* libzmq ends a connection on which messages come before it has said READY. */
static void wait_for_ready(int fd)
{
	uint8_t bytes[256];

	recv_all(fd, bytes, sizeof(greeting));
	recv_all(fd, bytes, 2);
	need(bytes[0] == COMMAND);
	recv_all(fd, bytes, bytes[1]);
}

void zmtp_open(struct zmtp_peer *p, const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	need(strlen(path) < sizeof(sa.sun_path));
	strcpy(sa.sun_path, path);
	p->path = path;
	p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	need(p->fd >= 0);
	need(!connect(p->fd, (struct sockaddr *)&sa, sizeof(sa)));
	need(send_all(p->fd, greeting, sizeof(greeting)));
	need(send_frame(p->fd, ready, sizeof(ready) - 1, COMMAND));
	wait_for_ready(p->fd);
}

/* What the other side says is dropped, until it ends the connection. */
static void wait_for_the_end(struct zmtp_peer *p)
{
	uint8_t bytes[4096];
	ssize_t n;

	do
		n = recv(p->fd, bytes, sizeof(bytes), 0);
	while (n > 0);
	need(n == 0 || errno == ECONNRESET);
	close(p->fd);
}

void zmtp_send(struct zmtp_peer *p, const void *bytes, size_t len, bool more)
{
	bool there = send_frame(p->fd, bytes, len, more ? MORE : 0);

	if (len <= TSI_MSG_MAX) {
		need(there);
		return;
	}
	wait_for_the_end(p);
	zmtp_open(p, p->path);
}

void zmtp_close(struct zmtp_peer *p)
{
	need(!shutdown(p->fd, SHUT_WR));
	wait_for_the_end(p);
}
