/* SPDX-License-Identifier: MIT */
/*
 * acceptor.h - the socket at which connections to a producer's channel arrive,
 * and whether they may be accepted now.
 *
 * Every connection takes a descriptor, and ZeroMQ aborts the process when it
 * can't have one.  So ZeroMQ accepts at a copy of this socket, and stops while
 * descriptors are short; new connections wait in the backlog.
 */
#ifndef TSI_WIRE_ACCEPTOR_H
#define TSI_WIRE_ACCEPTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/descriptors.h"

struct tsi_acceptor {
	int listener; /* -1: none */
	bool accepting;
	int64_t looked_ms, stopped_ms, said_ms;
	struct tsi_descriptors seen;
};

enum tsi_acceptor_turn {
	TSI_ACCEPTOR_GOES_ON,
	TSI_ACCEPTOR_STOPS,
	TSI_ACCEPTOR_STARTS,
};

/* Without a socket; once there is one, connections are accepted. */
void tsi_acceptor_init(struct tsi_acceptor *a);
void tsi_acceptor_close(struct tsi_acceptor *a);

/*
 * Listen at path, in place of where it listened before.  Returns -1 with errno
 * set.
 */
int tsi_acceptor_listen(struct tsi_acceptor *a, const char *path);

/* A copy of the socket's descriptor, or -1 with errno set. */
int tsi_acceptor_copy(const struct tsi_acceptor *a);

/*
 * What ZeroMQ has to do now, by the descriptors that are left.  The other two
 * tell that it is about to stop, and that it has started.  To stop is urgent:
 * it comes before all else.
 */
enum tsi_acceptor_turn tsi_acceptor_turn(struct tsi_acceptor *a);
void tsi_acceptor_stopping(struct tsi_acceptor *a);
void tsi_acceptor_started(struct tsi_acceptor *a);

/*
 * A descriptor that is readable when a connection has arrived, and it is time
 * for a turn: ZeroMQ reports a connection only when its peer has spoken.  -1:
 * none arrives, or it waits.
 */
int tsi_acceptor_arrivals(const struct tsi_acceptor *a);

/* Are connections accepted now, or as soon as there is a socket? */
bool tsi_acceptor_is_accepting(const struct tsi_acceptor *a);

#endif
