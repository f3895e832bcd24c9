/* SPDX-License-Identifier: MIT */
/*
 * members.h - the samples of a data set by their classes.
 *
 * Immutable: any thread may ask.
 */
#ifndef TSI_RUN_MEMBERS_H
#define TSI_RUN_MEMBERS_H

#include "data/index.h"

struct tsi_members;

/*
 * Takes 4 bytes of memory a sample, or none where samples lie by class anyway.
 * Fails with EARG (more than 2^32 samples that don't), ENOMEM.
 */
int tsi_members_create(const struct tsi_index *x, struct tsi_members **out);

/* NULL is allowed. */
void tsi_members_destroy(struct tsi_members *m);

/*
 * Samples of a class, and the k-th of them, in the data set's order.  Behind the
 * last one come those of the next class.
 */
uint64_t tsi_members_count(const struct tsi_members *m, uint64_t label);
uint64_t tsi_members_at(const struct tsi_members *m, uint64_t label,
			uint64_t k);

#endif
