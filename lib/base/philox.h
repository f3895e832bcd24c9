/* SPDX-License-Identifier: MIT */
/*
 * philox.h - random numbers as a pure function of a key and a counter.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
 * as 1, 2, 3", SC 2011).  Nothing is carried from one draw to the next, so a
 * draw doesn't depend on how many were made before it, or by which thread.
 */
#ifndef TSI_BASE_PHILOX_H
#define TSI_BASE_PHILOX_H

#include <stdint.h>

struct tsi_philox_ctr {
	uint32_t v[4];
};

/* Four independent uniform 32-bit words for (key, ctr). */
struct tsi_philox_ctr tsi_philox(uint64_t key, struct tsi_philox_ctr ctr);

/*
 * The words of n counters, a multiple of TSI_PHILOX_STEP: those of ctr, and of
 * the ones that follow by counting its first word on, modulo 2^32.
 */
#define TSI_PHILOX_STEP 8
void tsi_philox_run(uint64_t key, struct tsi_philox_ctr ctr, unsigned n,
		    struct tsi_philox_ctr *out);

#endif
