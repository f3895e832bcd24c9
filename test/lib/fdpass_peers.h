/* SPDX-License-Identifier: MIT */
/*
 * fdpass_peers.h - both sides of a connection that passes descriptors, one of
 * which may know nothing of the packets.
 */
#ifndef TEST_LIB_FDPASS_PEERS_H
#define TEST_LIB_FDPASS_PEERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/types.h>

#include "wire/fdpass.h"
#include "wire/peer.h"

#define LONG_MS 60000

extern const uint8_t fdpass_token[TSI_TOKEN];
extern char fdpass_folder[64];
extern char fdpass_path[80]; /* of the socket */
extern int fdpass_listener;

/* A producer that listens, and its end. */
int fdpass_setup(void **s);

int fdpass_teardown(void **s);

/* A child's exit status, or 1000 + the signal. */
int fdpass_exit_status(pid_t pid);

/* Until the descriptor can be read. */
void fdpass_wait_for(int fd);

/* Accept the next connection: what tsi_fdpass_receive() says of it. */
int fdpass_receive(struct tsi_peer *v);

/* Close what was kept of a peer. */
void fdpass_forget(struct tsi_peer *v);

/* A connection that knows nothing of our packets. */
int fdpass_raw_connect(void);

/* A request as it is on the wire. */
size_t fdpass_request(uint8_t *out);

/* Connect as a consumer does. */
int fdpass_to_producer(struct tsi_passed *k);

/* Connect, and be refused because the ring is full: 0 if so. */
int fdpass_be_refused(void);

#endif
