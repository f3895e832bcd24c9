/* SPDX-License-Identifier: MIT */
/*
 * members.h - the samples of a data set by their classes.
 *
 * Any thread may ask.  The list is made when it is first asked for, which takes
 * a look at the labels of all samples.
 */
#ifndef TSI_RUN_MEMBERS_H
#define TSI_RUN_MEMBERS_H

#include "data/index.h"

struct tsi_members;

/*
 * Reserves 4 bytes of memory a sample, 8 of more than 2^32, which are used only
 * by a list of samples that don't lie by class anyway; none where there is one
 * class.  Fails with ENOMEM.  x must outlive it.
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
