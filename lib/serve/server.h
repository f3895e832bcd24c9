/* SPDX-License-Identifier: MIT */
/*
 * server.h - a stream being served: the struct that joins the parts.
 *
 *   sync         the lock, and what threads wait for
 *   membership   the rules of who reads from where: pure
 *   offers       rows kept for consumers that asked to join: pure
 *   conn         the connection to one reader
 *   gpu_table    what is known of each GPU
 *   sockets      the stream's name, and the files of its sockets
 *   server       refresh, wait, drop, fail; what worker threads call
 *   view         one view; view_plan what it will be, view_thread its thread,
 *                view_neighbour and view_broadcast its ways from other GPUs,
 *                view_table all views
 *   handshake    connections become readers
 *   messages     requests and replies
 *   control      the control thread, which calls these
 *   options      the options of a server, checked: pure
 *   open         makes all of it, and takes it down
 *   stats        what a server says of itself
 *
 * A part calls those above it.
 */
#ifndef TSI_SERVE_SERVER_H
#define TSI_SERVE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "ring/pin.h"
#include "ring/ring.h"
#include "serve/conn.h"
#include "serve/gpu_table.h"
#include "serve/handshake.h"
#include "serve/membership.h"
#include "serve/offers.h"
#include "serve/sockets.h"
#include "serve/sync.h"
#include "serve/view_neighbour.h"
#include "serve/view_table.h"
#include "wire/msg.h"

/* A member and its row in the ring's header have the same number. */
_Static_assert(TSI_MAX_MEMBERS == TSI_MAX_ROWS, "one row for each member");

struct tsock_server {
	struct tsi_sync sync;
	pthread_t thread; /* control.c */
	bool has_thread;
	int event; /* an eventfd, by which consumers wake that thread */
	bool stop, failed, over;
	char error[252]; /* why the stream failed */

	struct tsi_sockets sockets;
	struct tsi_offers offers;
	struct tsi_handshake handshake;
	struct tsi_msg_stream stream; /* the reply to HELLO */
	uint8_t *meta;                /* class names */

	struct tsi_membership membership;
	struct tsi_conn conn[TSI_MAX_MEMBERS];
	uint64_t *bounds; /* of segments */
	uint32_t slow;    /* enum tsock_slow: the policy */
	int64_t slow_ms;

	struct tsi_ring *ring[TSI_VIEWS]; /* that consumers can join; or NULL */
	unsigned waiters[TSI_VIEWS];      /* threads that wait for its tails */
	uint8_t *done; /* by slot of the base: written, not yet published */
	uint64_t produced;
	_Atomic uint64_t read_bytes, bad_samples;

	struct tsi_view_table views;
	struct tsi_gpu_table gpus;
	struct tsi_gpu_copies copies;
	struct tsi_ring_pin pin; /* of the base ring */
};

/* ---- with the lock held ---- */

/* Read every tail; drop a reader that wrote an impossible one. */
void tsi_server_refresh(struct tsock_server *s);

/* A view's head, a limit or the membership changed: wake the writers. */
void tsi_server_changed(struct tsock_server *s);

/*
 * Sleep until a view's limit may have moved, or until_ns.  The headers say
 * which tails are waited for, and these are read once more before the sleep.
 */
void tsi_server_wait(struct tsock_server *s, unsigned view, int64_t until_ns);

/* A reader is no more: its row, its connection and its membership end. */
void tsi_server_drop(struct tsock_server *s, unsigned id, const char *why);

/* The rules of a join, as membership knows them. */
struct tsi_join tsi_server_rules(const struct tsi_msg_join *join,
				 unsigned view);

/* No reader needs another sample, and none can join that would: for ever. */
bool tsi_server_over(struct tsock_server *s);

/* The stream ends: readers, and consumers that want to join, are told why. */
void tsi_server_fail(struct tsock_server *s, const char *why);

#endif
