/* SPDX-License-Identifier: MIT */
/*
 * handshake.h - connections on the descriptor socket: peers become readers.
 *
 * The server's lock is held when these functions are called.
 */
#ifndef TSI_SERVE_HANDSHAKE_H
#define TSI_SERVE_HANDSHAKE_H

#include <poll.h>
#include <stdint.h>

#include "serve/offers.h"
#include "serve/readers.h"
#include "serve/tables.h"

#define TSI_PENDING_CONNS 64

/* A connection on which no token came yet. */
struct tsi_pending_conn {
	int sock; /* -1: none */
	uint32_t pid;
	int64_t expires_ms;
};

struct tsi_handshake {
	struct tsi_pending_conn pending[TSI_PENDING_CONNS];
	struct tsi_readers *readers;
	struct tsi_offers *offers;
	const struct tsi_tables *tables;
	int event; /* that a reader writes to wake the control thread */
	uint64_t incarnation;
	int64_t paused_ms; /* for want of descriptors nothing is accepted ... */
	int64_t logged_ms; /* ... until then; when that was logged */
};

void tsi_handshake_init(struct tsi_handshake *h, struct tsi_readers *readers,
			struct tsi_offers *offers,
			const struct tsi_tables *tables);

/* Before the first peer: what every reader is told. */
void tsi_handshake_begin(struct tsi_handshake *h, int event,
			 uint64_t incarnation);

void tsi_handshake_close(struct tsi_handshake *h);

/*
 * Accept the listener's connections that wait, and read the tokens that came: a
 * peer with the token of an offer becomes a reader, and one with the token of a
 * table gets its memory.  The lock is given up while the record of a new reader
 * is written.
 */
void tsi_handshake_serve(struct tsi_handshake *h, int listener, int64_t now_ms);

/*
 * What tsi_handshake_serve() waits for: fills at most 1 + TSI_PENDING_CONNS
 * entries, listener first, and returns how many.
 */
unsigned tsi_handshake_poll(const struct tsi_handshake *h, int listener,
			    int64_t now_ms, struct pollfd *fds);

#endif
