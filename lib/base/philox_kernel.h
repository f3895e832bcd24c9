/* SPDX-License-Identifier: MIT */
/*
 * philox_kernel.h - words of many counters: what philox.c and the versions for
 * each processor share.
 */
#ifndef TSI_BASE_PHILOX_KERNEL_H
#define TSI_BASE_PHILOX_KERNEL_H

#include "base/philox.h"
#include "base/simd.h"

struct tsi_philox_kernel {
	/* tsi_philox_run(), for a multiple of TSI_PHILOX_STEP counters. */
	void (*run)(uint64_t key, struct tsi_philox_ctr ctr, unsigned n,
		    struct tsi_philox_ctr *out);
};

void tsi_philox_kernel_init(struct tsi_philox_kernel *k, enum tsi_simd level);
void tsi_philox_kernel_init_x86(struct tsi_philox_kernel *k,
				enum tsi_simd level);
void tsi_philox_kernel_init_arm(struct tsi_philox_kernel *k,
				enum tsi_simd level);

#endif
