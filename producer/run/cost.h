/* SPDX-License-Identifier: MIT */
/*
 * cost.h - what it costs to make a sample: measured, on the data set itself.
 */
#ifndef TSI_RUN_COST_H
#define TSI_RUN_COST_H

#include <stdint.h>

#include "run/sampler.h"

/* Samples that are tried at most. */
#define TSI_COST_SAMPLES 32

struct tsi_cost {
	unsigned samples; /* that were made; 0: none of those that were tried */
	double us; /* the median of their times; 0 where there are none */
};

/*
 * Make samples of the first epoch, evenly spread over it, one after the other by
 * the calling thread.  Their files are read before the time of each begins, and
 * bad ones are left out; so are masks.  No more memory is used for an image than
 * this.  Fails with ENOMEM, and as tsi_sampler_at() does.
 */
int tsi_cost_measure(struct tsi_sampler *s, uint64_t image_memory,
		     struct tsi_cost *out);

#endif
