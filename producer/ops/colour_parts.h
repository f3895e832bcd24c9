/* SPDX-License-Identifier: MIT */
/*
 * colour_parts.h - what several operations on colours are made of.
 */
#ifndef TSI_OPS_COLOUR_PARTS_H
#define TSI_OPS_COLOUR_PARTS_H

#include <stdbool.h>
#include <stdint.h>

/* Pillow's L of red, green and blue. */
static inline uint32_t tsi_colour_luminance(const uint8_t *p)
{
	return (19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 0x8000u) >> 16;
}

struct tsi_colour_blend {
	float alpha;
	bool clips;
};

static inline struct tsi_colour_blend tsi_colour_blend_of(double factor)
{
	float alpha = (float)factor;

	return (struct tsi_colour_blend){ alpha, alpha < 0 || alpha > 1 };
}

/* Alpha 0 and 1 give d and v without being told apart. */
static inline uint8_t tsi_colour_blend(const struct tsi_colour_blend *b, int d,
				       int v)
{
	float x = (float)d + b->alpha * (float)(v - d);

	if (b->clips)
		return x <= 0 ? 0 : x >= 255 ? 255 : (uint8_t)x;
	return (uint8_t)x;
}

#endif
