/* SPDX-License-Identifier: MIT */
/*
 * draw.c - the random numbers of augmentations.
 */
#include "pixel/draw.h"

#include <math.h>

struct tsi_philox_ctr tsi_draw(uint64_t seed, uint32_t epoch, uint64_t index,
			       uint16_t op, uint32_t attempt)
{
	struct tsi_philox_ctr ctr = { { (uint32_t)index,
					(uint32_t)(index >> 32), epoch,
					(uint32_t)op << 16 | attempt } };

	return tsi_philox(seed, ctr);
}

float tsi_draw_uniform(uint32_t word, float low, float high)
{
	float u = (float)(word & 0xffffff) * 0x1p-24f;

	return fmaf(u, high - low, low);
}
