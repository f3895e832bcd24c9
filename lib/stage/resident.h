/* SPDX-License-Identifier: MIT */
/*
 * resident.h - samples of a ring in host memory that lie in a GPU's memory too,
 * where their maker has them.
 *
 * The ring has every byte, so a reader of it needs nothing from here.  A stage
 * that uploads to that GPU takes samples from there instead, so that they stay
 * on the GPU.  Memory is kept for that only while such a stage runs, and given
 * back when each of its samples was taken, or will not be.
 */
#ifndef TSI_STAGE_RESIDENT_H
#define TSI_STAGE_RESIDENT_H

#include <stdint.h>

#include "ring/ring.h"

/* Consecutive samples in the memory of a GPU. */
struct tsi_resident {
	unsigned device;
	uint64_t first;
	unsigned count;
	/* By field: the first one, the others behind it; NULL: host memory. */
	const uint8_t *data[TSOCK_MAX_FIELDS];
	uint64_t bytes[TSOCK_MAX_FIELDS]; /* of one sample */
	/* Once: the memory is not needed any more.  Called with no lock. */
	void (*release)(void *arg);
	void *arg;
};

struct tsi_residents;     /* all of one ring */
struct tsi_resident_held; /* the memory of one or more samples, held */

/* For a ring of so many samples. */
int tsi_residents_create(uint64_t capacity, struct tsi_residents **out);
/* Gives back all memory.  No stage uses it any more. */
void tsi_residents_destroy(struct tsi_residents *t);

/*
 * These samples are in the ring, and not published yet.  The memory is kept.
 * Returns what nobody needs: older memory, and this one where no stage would
 * take it.  Publish first, then give that back: its owner may be slow to take
 * it (Python's waits for the interpreter's lock).
 */
struct tsi_resident_held *tsi_residents_keep(struct tsi_residents *t,
					     const struct tsi_resident *r);

/*
 * These have come from elsewhere: what was kept of such numbers is stale, and
 * returned as above.
 */
struct tsi_resident_held *tsi_residents_forget(struct tsi_residents *t,
					       uint64_t first, unsigned count);

/* Give back what these returned, or NULL.  With no lock. */
void tsi_residents_give_back(struct tsi_resident_held *unneeded);

/* ---- for a stage that uploads to a GPU; t may be NULL ---- */

/* From now on, and no more: samples on that GPU are kept for it. */
void tsi_residents_attach(struct tsi_residents *t, unsigned device);
void tsi_residents_detach(struct tsi_residents *t, unsigned device);

/*
 * What is kept of these samples on that GPU is the caller's: held[i] is of the
 * sample first + i, NULL where it is in the ring alone.
 */
void tsi_residents_take(struct tsi_residents *t, unsigned device,
			uint64_t first, unsigned count,
			struct tsi_resident_held **held);

/* Where a field of that sample is; NULL: in the ring alone. */
const uint8_t *tsi_resident_at(const struct tsi_resident_held *held,
			       unsigned field, uint64_t sample);

/* No work reads them any more.  held becomes NULLs. */
void tsi_residents_drop(struct tsi_residents *t,
			struct tsi_resident_held **held, unsigned count);

#endif
