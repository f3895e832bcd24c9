/* SPDX-License-Identifier: MIT */
/*
 * budget.h - the memory that all large images of a process share.
 *
 * An image that a worker can decode within its own scratch memory never asks.
 * For a larger one the memory is claimed before it is decoded, and the worker
 * waits in line until so much is free: first come, first served, so that small
 * claims don't overtake a large one for ever.  Only a claim that holds nothing
 * waits, so claims can't wait for each other in a circle.
 *
 * The size is fixed when it is made: whether an image is too large for it does
 * not depend on time or on the number of workers.
 */
#ifndef TSI_PIXEL_BUDGET_H
#define TSI_PIXEL_BUDGET_H

#include <stdint.h>

struct tsi_budget;

/* Fails with TSOCK_ENOMEM. */
int tsi_budget_create(uint64_t bytes, struct tsi_budget **out);
/* NULL is allowed.  Every claim has ended. */
void tsi_budget_destroy(struct tsi_budget *b);

/* End all waiting, now and later, with TSOCK_ESTREAM.  Any thread. */
void tsi_budget_close(struct tsi_budget *b);

/* What one worker holds of a budget; used by that worker's thread alone. */
struct tsi_budget_claim {
	struct tsi_budget *budget; /* NULL: everything is granted */
	uint64_t held;
	uint64_t file;   /* of that, for the file's own bytes */
	uint64_t need;   /* of the image that was decoded last, large or not */
	uint64_t wanted; /* the total that was refused with EAGAIN */
};

/*
 * Hold at least total bytes.  A claim that holds nothing waits for them; one
 * that holds some gets the rest at once or TSOCK_EAGAIN: then it has to end,
 * and begin again with claim->wanted.  TSOCK_EDATA: the budget is smaller than
 * that, and the message says both sizes.  TSOCK_ESTREAM: closed.
 */
int tsi_budget_claim_grow(struct tsi_budget_claim *c, uint64_t total);

/* Hold so many bytes more for a file that is read, too.  Fails likewise. */
int tsi_budget_claim_file(struct tsi_budget_claim *c, uint64_t bytes);

/* One that holds nothing of b. */
static inline struct tsi_budget_claim tsi_budget_claim_of(struct tsi_budget *b)
{
	return (struct tsi_budget_claim){ .budget = b };
}

/* Hold all of the budget: a claim that holds nothing waits for all others. */
int tsi_budget_claim_all(struct tsi_budget_claim *c);

/* Give back all that is held. */
void tsi_budget_claim_end(struct tsi_budget_claim *c);

#endif
