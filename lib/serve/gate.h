/* SPDX-License-Identifier: MIT */
/*
 * gate.h - the rings that consumers read, and how far their writers may go.
 *
 * What membership decides is carried out here: heads are published, writers
 * that are at their limit sleep until a tail moves, and every ring says how the
 * stream ended.  The server's lock is held when these functions are called.
 */
#ifndef TSI_SERVE_GATE_H
#define TSI_SERVE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring.h"
#include "serve/membership.h"
#include "serve/sync.h"

struct tsi_gate {
	struct tsi_sync *sync;
	struct tsi_membership *membership;
	struct tsi_ring *ring[TSI_VIEWS]; /* that consumers can join; or NULL */
	unsigned waiters[TSI_VIEWS];      /* threads that wait for its tails */
	uint32_t warnings;                /* that can be asked for */
	bool failed, closed;
	bool stopped; /* beside failed: for good, by whom error says */
	char error[TSI_RING_ERROR]; /* why the stream failed */
};

void tsi_gate_init(struct tsi_gate *g, struct tsi_sync *sync,
		   struct tsi_membership *m);

/* From now on consumers can join the ring of a view, or can't any more. */
void tsi_gate_add_ring(struct tsi_gate *g, unsigned view, struct tsi_ring *r);
void tsi_gate_remove_ring(struct tsi_gate *g, unsigned view);

/* The ring of a view that consumers can join; or NULL. */
struct tsi_ring *tsi_gate_ring(const struct tsi_gate *g, unsigned view);

/* How many views there are besides the base that have readers. */
unsigned tsi_gate_views_read(const struct tsi_gate *g);

/* Views began, a bit for each: their heads are published. */
void tsi_gate_views_began(struct tsi_gate *g, unsigned views);

/* A view, whose ring consumers can join, may have a new generation. */
void tsi_gate_turned(struct tsi_gate *g, unsigned view);

/*
 * The base ring holds all samples below head.  Then somebody may have to be
 * told: stages that wait, a jump that has waited for it.  The first is also
 * called without the lock, by the worker whose turn it is (production.h).
 */
void tsi_gate_publish_base(struct tsi_gate *g, uint64_t head);
void tsi_gate_base_moved(struct tsi_gate *g);

/* The stream ends sooner: every ring says where. */
void tsi_gate_end_changed(struct tsi_gate *g);

/* A view's head, a limit or the membership changed: wake the writers. */
void tsi_gate_changed(struct tsi_gate *g);

/*
 * What workers wait for has changed: wake as many as there are samples for, and
 * one if there are none, so that it states what is waited for now.
 */
void tsi_gate_wake_workers(struct tsi_gate *g);

/* Samples are kept for readers that have still to return, or are no more: the
 * headers say so. */
void tsi_gate_state_held(struct tsi_gate *g);

/* Tell readers, in the rings' headers, how many warnings they can ask for. */
void tsi_gate_state_warnings(struct tsi_gate *g, uint32_t n);

/*
 * A view's writer is at its limit.  First the headers say which tails it waits
 * for; the caller reads all tails once more; then it sleeps, unless the limit
 * has moved, until something changes or tsi_now_ns() is until_ns.
 */
void tsi_gate_state_wants(struct tsi_gate *g, unsigned view);
void tsi_gate_sleep(struct tsi_gate *g, unsigned view, int64_t until_ns);

/* The stream ends: readers, and consumers that want to join, are told why. */
void tsi_gate_fail(struct tsi_gate *g, const char *why);

/* It ends for good, as that one has asked.  Has it? */
void tsi_gate_stop(struct tsi_gate *g, const char *who);
bool tsi_gate_stopped(const struct tsi_gate *g);

/* TSOCK_ESTREAM or, if it was stopped, EENDED, with the reason; 0: neither. */
int tsi_gate_err(const struct tsi_gate *g);

/* Why the stream failed, or who stopped it; NULL: neither. */
const char *tsi_gate_failure(const struct tsi_gate *g);

/* Every ring says that the producer has closed the stream; heads stay. */
void tsi_gate_close(struct tsi_gate *g);

#endif
