/*
 * bus.h - control messages over ZeroMQ, ipc:// only.
 *
 * ROUTER in the producer, DEALER in each consumer.  No other file knows
 * ZeroMQ.  A bus belongs to one thread at a time, and to the process that made
 * it: tsi_bus_close() in a forked child frees nothing and touches no socket.
 */
#ifndef TSI_WIRE_BUS_H
#define TSI_WIRE_BUS_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/msg.h"

struct tsi_bus;

#define TSI_PEER_MAX 32
struct tsi_peer {
	uint8_t len;
	uint8_t id[TSI_PEER_MAX];
};

int tsi_bus_bind(const char *path, struct tsi_bus **out);
int tsi_bus_connect(const char *path, struct tsi_bus **out);
void tsi_bus_close(struct tsi_bus *bus);
/* Listen at path as well; connections that there are stay as they are.  For the
 * producer, where the socket's file was removed. */
int tsi_bus_rebind(struct tsi_bus *bus, const char *path);

/*
 * Wait until a message is there (*ready), one of fds has revents, or timeout_ms
 * passed.  Returns 0, or an error; EINTR is a plain return.
 */
int tsi_bus_poll(struct tsi_bus *bus, struct pollfd *fds, unsigned nfds,
		 int timeout_ms, bool *ready);

/*
 * Take one message without waiting: TSOCK_EAGAIN when there is none,
 * TSOCK_EPROTO when it was garbage (dropped; the text says what).  peer is
 * who sent it (producer), or may be NULL (consumer).
 */
int tsi_bus_recv(struct tsi_bus *bus, struct tsi_peer *peer, struct tsi_msg *m);

/* Send, never blocking; a peer that is gone is not an error worth a fuss. */
int tsi_bus_send(struct tsi_bus *bus, const struct tsi_peer *peer,
		 const struct tsi_msg *m);

/* The version of ZeroMQ that is loaded, as "4.3.4". */
void tsi_bus_version(char *buf, size_t n);

#endif
