/*
 * server.h - the parts of a server, for the files of this room alone.
 *
 * server.c   the object, and what worker threads call
 * view_table.c    derived views, made and freed; view_plan.c for those on GPUs
 * gpu_table.c  what is known of each GPU
 * view_thread.c  the thread of each view; view_broadcast.c for views that are
 *            filled together
 * control.c  the control thread: deaths, slow readers; messages.c answers
 *            requests, handshake.c accepts connections, sockets.c watches files
 * membership.c  the rules, pure; where readers start in membership_start.c,
 *            who is slow in membership_slow.c
 *
 * One mutex guards everything here; the samples themselves are written with
 * no lock held.
 */
#ifndef TSI_SERVE_SERVER_H
#define TSI_SERVE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mem/gpu.h"
#include "ring/pin.h"
#include "ring/ring.h"
#include "serve/gpu_table.h"
#include "serve/handshake.h"
#include "serve/membership.h"
#include "serve/offers.h"
#include "serve/sockets.h"
#include "serve/view_neighbour.h"
#include "serve/view_table.h"
#include "wire/zmq.h"
#include "wire/fdpass.h"
#include "wire/address.h"

/* A member and its row in the ring's header have the same number. */
_Static_assert(TSI_MAX_MEMBERS == TSI_MAX_ROWS, "one row for each member");

/* The connection behind member i. */
struct tsi_conn {
	struct tsi_ring *ring; /* that it reads */
	struct tsi_memfd tail;
	int pidfd, sock;
	bool may_kill, killed, staged;
	uint32_t pid, batch;
	uint8_t nonce[TSI_NONCE];
};

struct tsock_server {
	pthread_mutex_t lock;
	pthread_cond_t room;   /* workers: there may be samples to claim */
	pthread_cond_t staged; /* stages: the base's head or a tail moved */
	pthread_t thread;
	bool has_thread;

	int event; /* consumers wake us by it */
	struct tsi_sockets sockets;
	struct tsi_membership membership;
	struct tsi_view_table views;
	struct tsi_ring *ring[TSI_VIEWS]; /* that consumers can join; or NULL */
	unsigned waiters[TSI_VIEWS];      /* threads that wait for its tails */
	struct tsi_conn conn[TSI_MAX_MEMBERS];
	struct tsi_offers offers;
	struct tsi_handshake handshake;
	uint8_t *done; /* by slot: written, not yet published */

	struct tsi_msg_stream stream; /* the answer to HELLO */
	uint8_t *meta;                /* class names */
	uint64_t *bounds;
	uint64_t produced;
	struct tsi_gpu_table gpus;
	struct tsi_gpu_copies copies;
	struct tsi_ring_pin pin; /* of the base ring */
	uint32_t slow;
	int64_t slow_ms;
	bool stop, failed, over;
	char error[252];

	_Atomic uint64_t read_bytes, bad_samples;
};

/* ---- with the lock held ---- */

/* Read every tail; give up whoever wrote nonsense into it. */
void tsi_server_refresh(struct tsock_server *s);

/* A view's head, a limit or the membership changed: tell who waits. */
void tsi_server_changed(struct tsock_server *s);

/*
 * Sleep until a view's limit may have moved, or until_ns.  States in the
 * headers which tail is waited for, and looks once more before it sleeps.
 */
void tsi_server_wait(struct tsock_server *s, unsigned view, pthread_cond_t *c,
		     int64_t until_ns);

/* The rules of a join, as membership knows them. */
struct tsi_join tsi_server_rules(const struct tsi_msg_join *join,
				 unsigned view);

/* Nobody needs anything more, and nobody can come who would: from then on. */
bool tsi_server_over(struct tsock_server *s);

void tsi_server_stats(struct tsock_server *s, struct tsock_stats *out);

/* The stream ends: whoever reads it, or would, is told why. */
void tsi_server_fail(struct tsock_server *s, const char *why);

/* Member id is no more. */
void tsi_server_drop(struct tsock_server *s, unsigned id, const char *why);

/* ---- without ---- */

#endif
