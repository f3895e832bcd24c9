/* SPDX-License-Identifier: MIT */
/*
 * timm_policy.c - the operations that timm's policies choose from.
 */
#include "transforms/timm_policy.h"

#include <math.h>

#include "ops/blur.h"
#include "ops/colour.h"
#include "ops/warp_map.h"
#include "transforms/warps.h"

/* Levels are so many of the whole. */
#define DENOMINATOR 10.0

/* ------------------------------------------------------------------------
 * Drawing
 */

static double at_most(double v, double most)
{
	return v < most ? v : most;
}

static double near(const struct tsi_timm_levels *l, double level,
		   struct tsi_words *w)
{
	if (isinf(l->std))
		level = tsi_words_between(w, 0, level);
	else if (l->std > 0)
		level += l->std * tsi_words_normal(w);
	level = at_most(level, l->most);
	return level > 0 ? level : 0;
}

static double either_side(struct tsi_words *w, double v)
{
	return tsi_words_double(w) > 0.5 ? -v : v;
}

static double bits(enum tsi_timm_way way, double part)
{
	double v = trunc(part * 4);

	if (way == TSI_TIMM_ORIGINAL)
		return v + 4;
	return way == TSI_TIMM_INCREASING ? 4 - v : v;
}

static double threshold(enum tsi_timm_way way, double part)
{
	double v = at_most(trunc(part * 256), 256);

	return way == TSI_TIMM_INCREASING ? 256 - v : v;
}

static double factor(enum tsi_timm_way way, double part, struct tsi_words *w)
{
	double v;

	if (way == TSI_TIMM_PLAIN)
		return part * 1.8 + 0.1;
	v = 1.0 + either_side(w, part * 0.9);
	return v > 0.1 ? v : 0.1;
}

/* What a level means to an operation: its argument. */
static double argument(enum tsi_timm_op chosen, enum tsi_timm_way way,
		       double part, double translate, struct tsi_words *w)
{
	switch (chosen) {
	case TSI_TIMM_ROTATE:
		return either_side(w, part * 30);
	case TSI_TIMM_POSTERIZE:
		return bits(way, part);
	case TSI_TIMM_SOLARIZE:
		return threshold(way, part);
	case TSI_TIMM_SOLARIZE_ADD:
		return at_most(trunc(part * 110), 128);
	case TSI_TIMM_COLOR:
	case TSI_TIMM_CONTRAST:
	case TSI_TIMM_BRIGHTNESS:
	case TSI_TIMM_SHARPNESS:
		return factor(way, part, w);
	case TSI_TIMM_SHEAR_X:
	case TSI_TIMM_SHEAR_Y:
		return either_side(w, part * 0.3);
	case TSI_TIMM_TRANSLATE_X:
	case TSI_TIMM_TRANSLATE_Y:
		return either_side(w, part * translate);
	case TSI_TIMM_DESATURATE:
		return at_most(0.5 + 0.5 * part, 1);
	case TSI_TIMM_BLUR:
		return tsi_words_between(w, 0.1, 2.0 * at_most(part, 1));
	default:
		return 0;
	}
}

void tsi_timm_draw(const struct tsi_timm_levels *l, enum tsi_timm_op chosen,
		   enum tsi_timm_way way, double level, struct tsi_words *w,
		   double *draws)
{
	/* Words of TSI_TIMM_ARG_FILTER, without random. */
	static const enum tsi_filter filters[] = { TSI_FILTER_NEAREST,
						   TSI_FILTER_BILINEAR,
						   TSI_FILTER_BICUBIC };
	const double part = near(l, level, w) / DENOMINATOR;

	draws[TSI_TIMM_OP] = chosen;
	draws[TSI_TIMM_BY] = argument(chosen, way, part, l->translate, w);
	draws[TSI_TIMM_WITH] =
		filters[l->filter ? l->filter - 1 : 1 + tsi_words_below(w, 2)];
}

/* ------------------------------------------------------------------------
 * Doing
 */

static int warp(enum tsi_timm_op chosen, double by, enum tsi_filter filter,
		const uint8_t *fill, struct tsi_canvas *c)
{
	double m[6];

	switch (chosen) {
	case TSI_TIMM_SHEAR_X:
		tsi_warp_map_plain_shear(by, 0, m);
		break;
	case TSI_TIMM_SHEAR_Y:
		tsi_warp_map_plain_shear(0, by, m);
		break;
	case TSI_TIMM_TRANSLATE_X:
		tsi_warp_map_plain_translate(by * c->width, 0, m);
		break;
	default:
		tsi_warp_map_plain_translate(0, by * c->height, m);
		break;
	}
	return tsi_warp_affine(c, c->width, c->height, m, filter, fill);
}

int tsi_timm_apply(const double *draws, const uint8_t *fill,
		   struct tsi_canvas *c)
{
	const double by = draws[TSI_TIMM_BY];
	const enum tsi_filter filter = (enum tsi_filter)draws[TSI_TIMM_WITH];

	if (draws[TSI_TIMM_OP] < 0)
		return 0;
	switch ((enum tsi_timm_op)draws[TSI_TIMM_OP]) {
	case TSI_TIMM_AUTO_CONTRAST:
		return tsi_colour_autocontrast(c);
	case TSI_TIMM_EQUALIZE:
		return tsi_colour_equalize(c);
	case TSI_TIMM_INVERT:
		return tsi_colour_invert(c);
	case TSI_TIMM_ROTATE:
		return tsi_warp_rotate(c, by, filter, false, NULL, fill);
	case TSI_TIMM_POSTERIZE:
		return tsi_colour_posterize(c, (unsigned)by);
	case TSI_TIMM_SOLARIZE:
		return tsi_colour_solarize(c, by);
	case TSI_TIMM_SOLARIZE_ADD:
		return tsi_colour_solarize_add(c, (int)by);
	case TSI_TIMM_COLOR:
		return tsi_colour_saturation(c, by);
	case TSI_TIMM_CONTRAST:
		return tsi_colour_contrast(c, by);
	case TSI_TIMM_BRIGHTNESS:
		return tsi_colour_brightness(c, by);
	case TSI_TIMM_SHARPNESS:
		return tsi_colour_sharpness(c, by);
	case TSI_TIMM_DESATURATE:
		return tsi_colour_saturation(c, 1 - by);
	case TSI_TIMM_BLUR:
		return tsi_blur_pillow(c, (float)by, (float)by);
	default:
		return warp((enum tsi_timm_op)draws[TSI_TIMM_OP], by, filter,
			    fill, c);
	}
}
