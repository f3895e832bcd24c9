/* SPDX-License-Identifier: MIT */
/*
 * substitute.h - which files may stand in for a bad one, and in which order
 * they are tried.
 *
 * Try k for the place of a file in an epoch is a function of (seed, epoch, the
 * file's index, k) and of the data set's labels.  The first tries are drawn
 * from the files of the same class, so that bad files are spread over the good
 * ones of their class.  Behind them come all files of the class, from a drawn
 * one on, so that one which is good is found if there is any; then the same
 * over the whole data set.  The first try that is good for the place stands in,
 * so which file that is depends on which files are bad and on nothing else.
 *
 * Immutable: any thread may ask.
 */
#ifndef TSI_RUN_SUBSTITUTE_H
#define TSI_RUN_SUBSTITUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "data/index.h"
#include "run/members.h"

struct tsi_substitutes;

/* Fails with ENOMEM.  x and m, its samples by class, must outlive it. */
int tsi_substitutes_create(const struct tsi_index *x,
			   const struct tsi_members *m, uint64_t seed,
			   struct tsi_substitutes **out);

/* NULL is allowed. */
void tsi_substitutes_destroy(struct tsi_substitutes *s);

/* Try k, from 0 on, for the file's place; false: there are no more. */
bool tsi_substitutes_at(const struct tsi_substitutes *s, uint64_t epoch,
			uint64_t index, uint64_t k, uint64_t *file);

/* The number of the file's first try that needn't be of its class. */
uint64_t tsi_substitutes_beyond_class(const struct tsi_substitutes *s,
				      uint64_t index);

#endif
