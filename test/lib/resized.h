/* SPDX-License-Identifier: MIT */
/*
 * resized.h - pictures to resize, and what the resampler makes of them.
 */
#ifndef TEST_LIB_RESIZED_H
#define TEST_LIB_RESIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resample/resample.h"

struct resized_picture {
	uint32_t width;
	uint32_t height;
	size_t stride;
	uint8_t *p;
};

/* Nothing behind the last row but what the contract asks for; p: to free(). */
struct resized_picture resized_make(uint32_t width, uint32_t height,
				    uint64_t seed);

/* All of an axis. */
struct tsi_axis resized_whole(uint32_t in, uint32_t out);

/* Rows of pixels, to free(): pushed in strips of so many rows. */
uint8_t *resized(enum tsi_simd simd, const struct resized_picture *s,
		 const struct tsi_axis *x, const struct tsi_axis *y,
		 enum tsi_passes passes, uint32_t strip);

/* As resized(); planes: strips may come in planes. */
uint8_t *resized_as(enum tsi_simd simd, bool planes,
		    const struct resized_picture *s, const struct tsi_axis *x,
		    const struct tsi_axis *y, enum tsi_passes passes,
		    uint32_t strip);

#endif
