/* SPDX-License-Identifier: MIT */
/*
 * erase.h - a box of a picture written over, as by torchvision's F.erase() on
 * bytes.
 *
 * Values are truncated, and their lowest eight bits are taken: -1 is 255 and 300
 * is 44, as torch's conversion has them on x86.  Noise of a standard deviation
 * of 1 is 0 then for the most part.
 */
#ifndef TSI_OPS_ERASE_H
#define TSI_OPS_ERASE_H

#include "ops/canvas.h"
#include "pixel/decoder.h"

/* Fill a box inside the picture with one value per channel, each below 2^31. */
void tsi_erase(struct tsi_canvas *c, const struct tsi_rect *box,
	       const double *value);

/* Fill it with a value for each of its pixels: [channel][y][x]. */
void tsi_erase_by_pixel(struct tsi_canvas *c, const struct tsi_rect *box,
			const float *values);

#endif
