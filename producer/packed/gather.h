/* SPDX-License-Identifier: MIT */
/*
 * gather.h - the kernels that pack blocks as blocks.h has them, the
 * reverse of expand.h: one for each kind of processor, with the same bytes
 * from each.
 */
#ifndef TSI_PACKED_GATHER_H
#define TSI_PACKED_GATHER_H

#include <stdint.h>

#include "pixel/simd.h"

/* What may be written behind the values. */
#define TSI_JPEG_GATHER_SLACK 64

struct tsi_jpeg_gather {
	const char *name;
	/*
	 * Up to n blocks: their masks, DCs and values, as far as the first
	 * block that has a coefficient, but for DC, that no byte has room for.
	 * Returns how many blocks were packed; *values is then behind their
	 * values.  What the masks and DCs of other blocks are is left open.
	 */
	uint32_t (*blocks)(const int16_t (*coef)[64], uint32_t n,
			   uint8_t *masks, uint8_t *dc, uint8_t **values);
};

/* NULL if this processor lacks simd.  BEST: the best that it has. */
const struct tsi_jpeg_gather *tsi_jpeg_gather_choose(enum tsi_simd simd);

/* NULL in builds for other processors. */
extern const struct tsi_jpeg_gather *const tsi_jpeg_gather_avx2;
/* Needs VBMI2 beside what TSI_SIMD_AVX512 stands for. */
extern const struct tsi_jpeg_gather *const tsi_jpeg_gather_avx512;
extern const struct tsi_jpeg_gather *const tsi_jpeg_gather_neon;

#endif
