/* SPDX-License-Identifier: MIT */
/*
 * colour_hue.c - the hue turned, and in plain C how.
 *
 * Formulas: Pillow's src/libImaging/Convert.c (rgb2hsv, hsv2rgb), torchvision's
 * _functional_pil.adjust_hue().
 */
#include "ops/colour.h"

#include <math.h>

#include "ops/colour_parts.h"

const uint32_t tsi_colour_hues_below[8] = {
	0xfffffffe, 0x00000000, 0x11000000, 0x00000111,
	0x222aaaaa, 0x23232222, 0x00022222, 0x00000000,
};

const uint32_t tsi_colour_places[8] = {
	0x010200, 0x010002, 0x020001, 0x000201, 0x000102, 0x020100, 0x010200,
};

struct hsv {
	uint8_t h, s, v;
};

static uint8_t clip(int v)
{
	return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

static struct hsv to_hsv(const uint8_t *p)
{
	const uint8_t r = p[0], g = p[1], b = p[2];
	const uint8_t max = r > g ? (r > b ? r : b) : g > b ? g : b;
	const uint8_t min = r < g ? (r < b ? r : b) : g < b ? g : b;
	struct hsv out = { .v = max };
	float range, s, rc, gc, bc, h;

	if (max == min)
		return out;
	range = (float)(max - min);
	s = range / (float)max;
	rc = (float)(max - r) / range;
	gc = (float)(max - g) / range;
	bc = (float)(max - b) / range;
	if (r == max)
		h = bc - gc;
	else if (g == max)
		h = (float)(2.0 + (double)rc - (double)bc);
	else
		h = (float)(4.0 + (double)gc - (double)rc);
	h = (float)fmod((double)h / 6.0 + 1.0, 1.0);
	out.h = clip((int)((double)h * 255.0));
	out.s = clip((int)((double)s * 255.0));
	return out;
}

static void to_rgb(struct hsv c, uint8_t *p)
{
	const double v = c.v;
	double h6, sector;
	float f, fs;
	uint8_t low, down, up;

	if (!c.s) {
		p[0] = p[1] = p[2] = c.v;
		return;
	}
	h6 = c.h * 6.0 / 255.0;
	sector = floor(h6);
	f = (float)(h6 - sector);
	fs = (float)(c.s / 255.0);
	low = clip((int)round(v * (1.0 - (double)fs)));
	down = clip((int)round(v * (1.0 - (double)(fs * f))));
	up = clip((int)round(v * (1.0 - (double)fs * (1.0 - (double)f))));
	switch ((int)sector % 6) {
	case 0:
		p[0] = c.v, p[1] = up, p[2] = low;
		break;
	case 1:
		p[0] = down, p[1] = c.v, p[2] = low;
		break;
	case 2:
		p[0] = low, p[1] = c.v, p[2] = up;
		break;
	case 3:
		p[0] = low, p[1] = down, p[2] = c.v;
		break;
	case 4:
		p[0] = up, p[1] = low, p[2] = c.v;
		break;
	default:
		p[0] = c.v, p[1] = low, p[2] = down;
		break;
	}
}

void tsi_colour_turn_hue(uint8_t by, uint8_t *p, size_t n)
{
	for (; n; n--, p += 3) {
		struct hsv v = to_hsv(p);

		v.h = (uint8_t)(v.h + by);
		to_rgb(v, p);
	}
}

int tsi_colour_hue(struct tsi_canvas *c, double hue)
{
	if (c->channels == 3)
		c->colour.hue((uint8_t)((int)(hue * 255) & 255), c->pixels,
			      (size_t)c->width * c->height);
	return 0;
}
