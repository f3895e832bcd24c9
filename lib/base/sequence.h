/* SPDX-License-Identifier: MIT */
/*
 * sequence.h - sequence numbers of samples, the lower and the higher of two.
 *
 * The samples of an endless stream are numbered from 0.  A head, a tail and the
 * start of an epoch are such numbers.
 */
#ifndef TSI_BASE_SEQUENCE_H
#define TSI_BASE_SEQUENCE_H

#include <stdint.h>

#define TSI_NEVER UINT64_MAX /* no sample ever has this number */

static inline uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
