/* SPDX-License-Identifier: MIT */
/*
 * colour_hue.c - the hue turned.
 *
 * Formulas: Pillow's src/libImaging/Convert.c (rgb2hsv, hsv2rgb), torchvision's
 * _functional_pil.adjust_hue().
 */
#include "ops/colour.h"

int tsi_colour_hue(struct tsi_canvas *c, double hue)
{
	if (c->channels == 3)
		c->colour.hue(c->pixels, (size_t)c->width * c->height,
			      (uint8_t)((int)(hue * 255) & 255));
	return 0;
}
