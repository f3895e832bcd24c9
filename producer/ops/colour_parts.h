/* SPDX-License-Identifier: MIT */
/*
 * colour_parts.h - what several operations on colours are made of, in plain C.
 */
#ifndef TSI_OPS_COLOUR_PARTS_H
#define TSI_OPS_COLOUR_PARTS_H

#include <stddef.h>
#include <stdint.h>

/* Pillow's L of red, green and blue. */
static inline uint32_t tsi_colour_luminance(const uint8_t *p)
{
	return (19595u * p[0] + 38470u * p[1] + 7471u * p[2] + 0x8000u) >> 16;
}

/*
 * Pillow clips for alphas outside of 0 to 1 alone, and copies for those two: the
 * bytes are the same, since nothing else leaves the range between d and v.
 */
static inline uint8_t tsi_colour_blend(float alpha, int d, int v)
{
	float x = (float)d + alpha * (float)(v - d);

	return x <= 0 ? 0 : x >= 255 ? 255 : (uint8_t)x;
}

/* The slot `hue` of struct tsi_colour_kernel. */
void tsi_colour_turn_hue(uint8_t by, uint8_t *p, size_t n);

/*
 * For vector code: hues, one bit each, for which Pillow's rounded parts give one
 * less where they are exact.
 */
extern const uint32_t tsi_colour_hues_below[8];

/*
 * In which byte of value, lowest, middle a sector has its red, green and blue:
 * the lower three bytes.  Sector 6 is the first one again.
 */
extern const uint32_t tsi_colour_places[8];

#endif
