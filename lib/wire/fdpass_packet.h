/* SPDX-License-Identifier: MIT */
/*
 * fdpass_packet.h - one packet of a unix socket, and the descriptors with it.
 * What the bytes mean is for fdpass.c.
 */
#ifndef TSI_WIRE_FDPASS_PACKET_H
#define TSI_WIRE_FDPASS_PACKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/fdpass.h"

/* One packet, and the descriptors that came with it. */
struct tsi_fdpass_packet {
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
int tsi_fdpass_packet_receive(int sock, unsigned max,
			      struct tsi_fdpass_packet *p);

/* What sendmsg() returned, with errno. */
ssize_t tsi_fdpass_packet_send(int sock, const uint8_t *bytes, size_t len,
			       const int *fds, unsigned nfds);

/* Close the descriptors that came with it. */
void tsi_fdpass_packet_close(struct tsi_fdpass_packet *p);

#endif
