/* SPDX-License-Identifier: MIT */
/*
 * grant.h - samples that may be claimed without the server's lock.
 *
 * The holder of the lock closes the grant, and is told how far the claims have
 * come; nobody claims anything until the holder opens the next grant.  So a
 * limit that a grant was made of is still the limit when a claim is made, and
 * what the holder decides is decided for claims that are over.
 */
#ifndef TSI_SERVE_GRANT_H
#define TSI_SERVE_GRANT_H

#include <stdatomic.h>
#include <stdint.h>

#define TSI_GRANT_MOST 4095 /* samples of one grant */

struct tsi_grant {
	/* From the highest bit on: the number of the grant (40 bits), samples
	 * taken, and samples granted (12 each). */
	_Atomic uint64_t word;
	_Atomic uint64_t first; /* sample of the grant */
};

/* Nothing is granted, and the next sample is this one. */
void tsi_grant_init(struct tsi_grant *g, uint64_t next);

/* Claim so many samples, all of them or none: returns how many.  Any thread. */
unsigned tsi_grant_take(struct tsi_grant *g, unsigned want, uint64_t *first);

/*
 * All samples below this one are claimed, and perhaps more by now.  Not while
 * another thread opens or closes the grant.
 */
uint64_t tsi_grant_claimed(const struct tsi_grant *g);

/* ---- for the holder of the lock ---- */

/* The first sample that is not claimed; it stays so until the next grant. */
uint64_t tsi_grant_close(struct tsi_grant *g);

/* A closed grant: the next sample is another one. */
void tsi_grant_move(struct tsi_grant *g, uint64_t next);

/* A closed grant: so many samples from the next one on may be claimed. */
void tsi_grant_open(struct tsi_grant *g, uint64_t count);

#endif
