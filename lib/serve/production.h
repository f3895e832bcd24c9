/* SPDX-License-Identifier: MIT */
/*
 * production.h - what the workers have written into the base ring.
 *
 * Workers claim sequence numbers, write the slots, and commit in any order; the
 * head follows the finished prefix.  All that takes no lock while nobody holds
 * the server's.  A thread that takes the lock stops this: then claimed, head
 * and limit are exact, and stay so until the lock is given up.
 */
#ifndef TSI_SERVE_PRODUCTION_H
#define TSI_SERVE_PRODUCTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "serve/gate.h"
#include "serve/grant.h"
#include "serve/membership.h"
#include "serve/sync.h"

struct tsi_production {
	struct tsi_sync *sync;
	struct tsi_membership *membership;
	struct tsi_gate *gate;
	_Atomic uint8_t *done; /* by slot: written, not yet published */
	uint64_t capacity;
	/* Used by the thread whose turn it is. */
	uint64_t produced;
	uint64_t lock_at; /* a head from there on needs the lock */
	bool stopped;
	/* The views that workers write, a bit for each, and from where on. */
	_Atomic uint32_t views;
	_Atomic uint64_t joint[TSI_VIEWS];
	/* What claims, and what commits, write has a cache line of its own. */
	uint8_t line[64];
	struct tsi_grant grant;
	uint8_t line_2[64];
	_Atomic uint32_t turn;
	uint8_t line_3[64];
	_Atomic uint64_t read_bytes, bad_samples, bad_files;
};

/*
 * Begin with a ring of capacity slots, none of them written.  From now on the
 * lock, which nobody holds yet, stops the production.
 */
int tsi_production_init(struct tsi_production *p, uint64_t capacity,
			struct tsi_sync *sync, struct tsi_membership *m,
			struct tsi_gate *gate);
void tsi_production_fini(struct tsi_production *p);

/* ---- without the lock; any thread ---- */

/*
 * Claim so many samples, all of them or none: returns how many.  0 says that
 * the lock has to be taken, and membership asked.
 */
unsigned tsi_production_claim(struct tsi_production *p, unsigned want,
			      uint64_t *first);

/*
 * The views, a bit for each, into which a worker writes this sample, too, which it
 * has claimed and not committed.  A view that ends meanwhile may be among them.
 */
uint32_t tsi_production_views(const struct tsi_production *p, uint64_t s);

/*
 * These samples are written.  Takes the lock where a view waits for them, a
 * jump does, or the stream ends with them.
 */
void tsi_production_commit(struct tsi_production *p, uint64_t first,
			   unsigned count);

/* What the workers read, and how many samples were bad. */
void tsi_production_count(struct tsi_production *p, uint64_t read_bytes,
			  uint64_t bad_samples);

/* How many files are bad by now. */
void tsi_production_set_bad_files(struct tsi_production *p, uint64_t bad_files);

/* ---- with it ---- */

/* From now on nobody claims anything without asking. */
void tsi_production_stop(struct tsi_production *p);

/* What the statistics say of all that. */
void tsi_production_stats(const struct tsi_production *p,
			  struct tsock_stats *st);

#endif
