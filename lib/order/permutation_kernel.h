/* SPDX-License-Identifier: MIT */
/*
 * permutation_kernel.h - the network of many numbers: what permutation.c and
 * the versions for each processor share.
 */
#ifndef TSI_ORDER_PERMUTATION_KERNEL_H
#define TSI_ORDER_PERMUTATION_KERNEL_H

#include "base/simd.h"
#include "order/permutation.h"

#define TSI_PERMUTATION_ROUNDS 6 /* an even number */

/* What a word is multiplied by, and by how much it is shifted each time. */
#define TSI_PERMUTATION_M0 0x7feb352du
#define TSI_PERMUTATION_M1 0x846ca68bu
#define TSI_PERMUTATION_M2 0xd256d193u
#define TSI_PERMUTATION_SHIFT 15

#define TSI_PERMUTATION_STEP 16

struct tsi_permutation_kernel {
	/* Take n numbers, a multiple of the step, through the network once:
	 * their rows and columns. */
	void (*run)(const struct tsi_permutation *p, const uint32_t *key,
		    uint32_t *row, uint32_t *column, unsigned n);
};

void tsi_permutation_kernel_init(struct tsi_permutation_kernel *k,
				 enum tsi_simd level);
void tsi_permutation_kernel_init_x86(struct tsi_permutation_kernel *k,
				     enum tsi_simd level);
void tsi_permutation_kernel_init_arm(struct tsi_permutation_kernel *k,
				     enum tsi_simd level);

#endif
