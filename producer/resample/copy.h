/* SPDX-License-Identifier: MIT */
/*
 * copy.h - a window of an image that keeps its size: pixels as they are, perhaps
 * in reverse order.
 */
#ifndef TSI_RESAMPLE_COPY_H
#define TSI_RESAMPLE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pixel/decoder.h"
#include "resample/kernel.h"

struct tsi_copy {
	uint32_t width;
	bool mirror;
	uint8_t *dst; /* of the next row: three bytes a pixel */
	size_t stride;
};

/* The next rows of the window, in planes or as four bytes a pixel. */
void tsi_copy_push(struct tsi_copy *c, const struct tsi_resample_kernel *k,
		   const struct tsi_strip *strip);

#endif
