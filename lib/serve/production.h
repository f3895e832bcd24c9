/* SPDX-License-Identifier: MIT */
/*
 * production.h - what the workers have written into the base ring.
 *
 * Workers claim sequence numbers, write the slots with no lock held, and
 * commit in any order.  The head follows the finished prefix.
 */
#ifndef TSI_SERVE_PRODUCTION_H
#define TSI_SERVE_PRODUCTION_H

#include <stdatomic.h>
#include <stdint.h>

#include "serve/gate.h"
#include "serve/membership.h"

struct tsi_production {
	struct tsi_membership *membership;
	struct tsi_gate *gate;
	uint8_t *done; /* by slot: written, not yet published */
	uint64_t capacity;
	uint64_t produced;
	_Atomic uint64_t read_bytes, bad_samples;
};

/* A ring of capacity slots, none of them written. */
int tsi_production_init(struct tsi_production *p, uint64_t capacity,
			struct tsi_membership *m, struct tsi_gate *gate);
void tsi_production_fini(struct tsi_production *p);

/* With the server's lock held: these samples are written. */
void tsi_production_commit(struct tsi_production *p, uint64_t first,
			   unsigned count);

/* Without it: what the workers read, and how many samples were bad. */
void tsi_production_count(struct tsi_production *p, uint64_t read_bytes,
			  uint64_t bad_samples);

/* With it: what the statistics say of all that. */
void tsi_production_stats(const struct tsi_production *p,
			  struct tsock_stats *st);

#endif
