/* SPDX-License-Identifier: MIT */
/*
 * entropy_kernel.h - how bytes become codes, and codes coefficients: what
 * entropy.c and wide.c and the versions for each processor share.
 */
#ifndef TSI_JPEG_ENTROPY_KERNEL_H
#define TSI_JPEG_ENTROPY_KERNEL_H

#include <stdint.h>

#include "base/simd.h"
#include "jpeg/lane.h"
#include "jpeg/unstuff.h"
#include "jpeg/wide.h"

struct tsi_entropy_kernel {
	tsi_unstuff_fn *unstuff;
	/* Up to four rows, in turns. */
	tsi_lane_run_fn *run;
	/* Sixteen pieces at once; NULL: not written for this processor. */
	tsi_wide_run_fn *wide_run;
	tsi_wide_settle_fn *wide_settle;
	/*
	 * Pieces from which on sixteen at once are faster than four rows; 0:
	 * they never are on this processor.
	 */
	uint32_t wide_from;
};

void tsi_entropy_kernel_init(struct tsi_entropy_kernel *k, enum tsi_simd level);
void tsi_entropy_kernel_init_x86(struct tsi_entropy_kernel *k,
				 enum tsi_simd level);
void tsi_entropy_kernel_init_arm(struct tsi_entropy_kernel *k,
				 enum tsi_simd level);

#endif
