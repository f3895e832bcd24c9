/* SPDX-License-Identifier: MIT */
/*
 * zmq.h - the channel of control messages: ZeroMQ over ipc://.
 *
 * The producer has a ROUTER socket, each consumer a DEALER.  No other file
 * knows ZeroMQ.  One thread at a time uses a channel, in the process that
 * opened it: in a forked child every call is TSOCK_EFORK, and
 * tsi_zmq_close() frees nothing and touches no socket.
 */
#ifndef TSI_WIRE_ZMQ_H
#define TSI_WIRE_ZMQ_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

struct tsi_channel;

/* The name under which a ROUTER knows a connection (zmq_socket(3)). */
#define TSI_ROUTING_ID_MAX 32
struct tsi_routing_id {
	uint8_t len;
	uint8_t bytes[TSI_ROUTING_ID_MAX];
};

/* The producer listens at path; any socket that was there is replaced. */
int tsi_zmq_bind(const char *path, struct tsi_channel **out);
/*
 * A consumer connects.  Success doesn't mean that a producer is there: ZeroMQ
 * goes on trying, and what is sent before it succeeds is dropped.
 */
int tsi_zmq_connect(const char *path, struct tsi_channel **out);
void tsi_zmq_close(struct tsi_channel *ch);
/*
 * The producer listens at path as well, because the socket's file was removed.
 * Connections that were made through the old file stay open.
 */
int tsi_zmq_rebind(struct tsi_channel *ch, const char *path);

/*
 * Wait until a message can be received (*ready), a descriptor of fds has
 * revents, or timeout_ms passed (-1: no limit).  Returns 0, or an error; after
 * a signal it returns 0 early.
 */
int tsi_zmq_poll(struct tsi_channel *ch, struct pollfd *fds, unsigned nfds,
		 int timeout_ms, bool *ready);

/*
 * Receive one message without waiting: TSOCK_EAGAIN when there is none,
 * TSOCK_EPROTO when the message was malformed (it is dropped, and the error's
 * text says what was wrong).  *id becomes the sender's routing id; a consumer
 * passes NULL.
 */
int tsi_zmq_recv(struct tsi_channel *ch, struct tsi_routing_id *id,
		 struct tsi_msg *m);

/*
 * Send without blocking.  If the peer has gone, or reads nothing, the message
 * is dropped and the result is 0: a request that matters is sent again.
 */
int tsi_zmq_send(struct tsi_channel *ch, const struct tsi_routing_id *id,
		 const struct tsi_msg *m);

/* The version of ZeroMQ that is loaded, as "4.3.4". */
void tsi_zmq_version(char *buf, size_t n);

#endif
