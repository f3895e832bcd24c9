/* SPDX-License-Identifier: MIT */
/*
 * row.h - the fields of a sample that come from the data set's index: label,
 * columns, index, weight and key.
 */
#ifndef TSI_RUN_ROW_H
#define TSI_RUN_ROW_H

#include <stdint.h>

#include "data/index.h"
#include "run/sampler.h"
#include "run/schema.h"

/* Those of this file of the data set.  Fails as tsi_columns_put() does. */
int tsi_row_put(const struct tsi_index *x, uint64_t file,
		const struct tsi_slots *to);

/*
 * Make the n samples from number first on, without images, whose slots lie one
 * behind the other from those of to on; TSI_COLUMNS_RUN at most.  Fails as
 * tsi_sampler_at() and tsi_columns_put() do.
 */
int tsi_row_make(struct tsi_sampler *s, uint64_t first, unsigned n,
		 const struct tsi_slots *to);

#endif
