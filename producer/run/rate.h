/* SPDX-License-Identifier: MIT */
/*
 * rate.h - the sample rate of an audio file of the data set.
 */
#ifndef TSI_RUN_RATE_H
#define TSI_RUN_RATE_H

#include <stdint.h>

#include "data/index.h"

/*
 * The rate of file i; 0: it can't be read, or is no audio file.  Fails with
 * ENOMEM, ESYS (descriptors).
 */
int tsi_rate_of(const struct tsi_index *x, uint64_t i, uint32_t *rate);

#endif
