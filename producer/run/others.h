/* SPDX-License-Identifier: MIT */
/*
 * others.h - the images of a sample behind the first: read here and now, and
 * made by the first one's draws.
 *
 * Where one can't be made the sample is none, as if the first couldn't be, and
 * the reason names the image.
 */
#ifndef TSI_RUN_OTHERS_H
#define TSI_RUN_OTHERS_H

#include <stdbool.h>
#include <stdint.h>

#include "run/maker.h"
#include "run/read_wait.h"
#include "run/sampler.h"
#include "run/target.h"

struct tsi_budget_claim;

/* Used by one thread. */
struct tsi_others;

/*
 * For samples that m makes; all of these outlive it.  *out is NULL if samples
 * have one image.  Fails with ENOMEM.
 */
int tsi_others_create(const struct tsi_sampler *s, struct tsi_maker *m,
		      struct tsi_budget_claim *claim,
		      struct tsi_read_wait *wait, struct tsi_others **out);

/* NULL is allowed. */
void tsi_others_destroy(struct tsi_others *o);

/* How many a sample has. */
unsigned tsi_others_count(const struct tsi_others *o);

struct tsi_others_want {
	uint64_t file; /* whose first image was made last */
	const struct tsi_sample_id *id;
	bool direct;        /* files are read past the page cache */
	uint8_t *const *to; /* where each goes */
};

/*
 * Make them, and add to *read_bytes what was read.  False: o says what came of
 * the sample instead.
 */
bool tsi_others_make(struct tsi_others *m, const struct tsi_others_want *q,
		     uint64_t *read_bytes, struct tsi_outcome *o);

#endif
