/* SPDX-License-Identifier: MIT */
/*
 * socket.h - unix sockets: one that accepts connections, and single packets
 * with the descriptors that come along.  What the bytes mean is for fdpass.c.
 */
#ifndef TSI_WIRE_SOCKET_H
#define TSI_WIRE_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/fdpass.h"

/*
 * Listen at path, after removing a socket that is there: call it with the
 * stream's lock held.  The descriptor is non-blocking and CLOEXEC; closing it
 * leaves the file.  On an error -1, with errno set.
 */
int tsi_socket_listen(const char *path, int type, int backlog);

/* One packet, and the descriptors that came with it. */
struct tsi_socket_packet {
	uint8_t bytes[512];
	size_t len;
	int fd[TSI_FDPASS_FDS];
	unsigned nfds;
};

/*
 * Never blocks: TSOCK_EAGAIN when none has come.  At most max descriptors are
 * received; the kernel closes the others.  On success those in p are the
 * caller's to close.
 */
int tsi_socket_receive(int sock, unsigned max, struct tsi_socket_packet *p);

/* What sendmsg() returned, with errno. */
ssize_t tsi_socket_send(int sock, const uint8_t *bytes, size_t len,
			const int *fds, unsigned nfds);

/* Close the descriptors that came with it. */
void tsi_socket_packet_close(struct tsi_socket_packet *p);

#endif
