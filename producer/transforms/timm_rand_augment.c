/* SPDX-License-Identifier: MIT */
/*
 * timm_rand_augment.c - TimmRandAugment: timm's rand_augment_transform(), whose
 * "rand-m9-mstd0.5-inc1" is TimmRandAugment(m=9, mstd=0.5, inc=True).
 *
 * Formulas: timm/data/auto_augment.py (AugmentOp, RandAugment, *_level_to_arg).
 */
#include <math.h>

#include "ops/colour.h"
#include "ops/warp_map.h"
#include "transforms/op.h"
#include "transforms/sizes.h"
#include "transforms/warps.h"

/* Most operations one after the other. */
#define MOST 16

/* Magnitudes are so many of the whole. */
#define DENOMINATOR 10.0

enum { M, N, P, MSTD, MMAX, INC, FILTER, FILL };

/* What is drawn for each layer. */
enum { OP, BY, WITH, EACH };

/* In timm's order. */
enum {
	AUTO_CONTRAST,
	EQUALIZE,
	INVERT,
	ROTATE,
	POSTERIZE,
	SOLARIZE,
	SOLARIZE_ADD,
	COLOR,
	CONTRAST,
	BRIGHTNESS,
	SHARPNESS,
	SHEAR_X,
	SHEAR_Y,
	TRANSLATE_X,
	TRANSLATE_Y,
	OPS,
};

static const struct tsi_arg args[] = {
	[M] = { .name = "m",
		.kind = TSI_ARG_NUMBER,
		.value = "10",
		.min = 0,
		.max = 100 },
	[N] = { .name = "n",
		.kind = TSI_ARG_WHOLE,
		.value = "2",
		.min = 0,
		.max = MOST },
	[P] = TSI_ARG_P("0.5"),
	/* Above 100: uniform from 0 to m. */
	[MSTD] = { .name = "mstd",
		   .kind = TSI_ARG_NUMBER,
		   .value = "0",
		   .min = 0,
		   .max = 1e6 },
	[MMAX] = { .name = "mmax",
		   .kind = TSI_ARG_NUMBER,
		   .value = "10",
		   .min = 0,
		   .max = 100 },
	[INC] = { .name = "inc", .kind = TSI_ARG_SWITCH, .value = "False" },
	[FILTER] = { .name = "interpolation",
		     .kind = TSI_ARG_WORD,
		     .value = "random",
		     .words = "random|nearest|bilinear|bicubic" },
	[FILL] = { .name = "fill",
		   .kind = TSI_ARG_NUMBER,
		   .value = "(124, 116, 104)",
		   .least = 1,
		   .most = 3,
		   .min = 0,
		   .max = 255 },
	{ 0 },
};

static bool check(struct tsi_op *op, const char **why)
{
	if (op->arg[FILL].n != 2)
		return true;
	*why = "fill has 1 or 3 numbers";
	return false;
}

static unsigned count(const struct tsi_op *op)
{
	return (unsigned)tsi_op_number(op, N) * EACH;
}

static double at_most(double v, double most)
{
	return v < most ? v : most;
}

static double magnitude_of(const struct tsi_op *op, struct tsi_words *w)
{
	const double std = tsi_op_number(op, MSTD);
	double m = tsi_op_number(op, M);

	if (std > 100)
		m = tsi_words_between(w, 0, m);
	else if (std > 0)
		m += std * tsi_words_normal(w);
	m = at_most(m, tsi_op_number(op, MMAX));
	return m > 0 ? m : 0;
}

static double either_side(struct tsi_words *w, double v)
{
	return tsi_words_double(w) > 0.5 ? -v : v;
}

/* What a level means to an operation: its argument. */
static double argument(unsigned chosen, double level, bool inc,
		       struct tsi_words *w)
{
	const double part = level / DENOMINATOR;
	double v;

	switch (chosen) {
	case ROTATE:
		return either_side(w, part * 30);
	case POSTERIZE:
		v = trunc(part * 4);
		return inc ? 4 - v : v;
	case SOLARIZE:
		v = at_most(trunc(part * 256), 256);
		return inc ? 256 - v : v;
	case SOLARIZE_ADD:
		return at_most(trunc(part * 110), 128);
	case COLOR:
	case CONTRAST:
	case BRIGHTNESS:
	case SHARPNESS:
		if (!inc)
			return part * 1.8 + 0.1;
		v = 1.0 + either_side(w, part * 0.9);
		return v > 0.1 ? v : 0.1;
	case SHEAR_X:
	case SHEAR_Y:
		return either_side(w, part * 0.3);
	case TRANSLATE_X:
	case TRANSLATE_Y:
		return either_side(w, part * 0.45);
	default:
		return 0;
	}
}

static int draw(const struct tsi_op *op, struct tsi_words *w, uint32_t width,
		uint32_t height, double *draws)
{
	const double p = tsi_op_number(op, P);
	const unsigned filter = (unsigned)tsi_op_number(op, FILTER);

	(void)width;
	(void)height;
	for (unsigned k = 0; k < (unsigned)tsi_op_number(op, N);
	     k++, draws += EACH) {
		unsigned chosen = tsi_words_below(w, OPS);
		bool done = p >= 1 || tsi_words_double(w) <= p;

		draws[OP] = done ? chosen : -1.0;
		if (!done)
			continue;
		draws[BY] = argument(chosen, magnitude_of(op, w),
				     tsi_op_number(op, INC) != 0, w);
		/* TSI_WARP_BILINEAR or TSI_WARP_BICUBIC. */
		draws[WITH] =
			filter ? filter - 1
			       : TSI_WARP_BILINEAR + tsi_words_below(w, 2);
	}
	return 0;
}

static int warp(unsigned chosen, double by, enum tsi_warp_filter filter,
		const uint8_t *fill, struct tsi_canvas *c)
{
	double m[6];

	switch (chosen) {
	case SHEAR_X:
		tsi_warp_map_plain_shear(by, 0, m);
		break;
	case SHEAR_Y:
		tsi_warp_map_plain_shear(0, by, m);
		break;
	case TRANSLATE_X:
		tsi_warp_map_plain_translate(by * c->width, 0, m);
		break;
	default:
		tsi_warp_map_plain_translate(0, by * c->height, m);
		break;
	}
	return tsi_warp_affine(c, c->width, c->height, m, filter, fill);
}

static int apply_one(unsigned chosen, double by, enum tsi_warp_filter filter,
		     const uint8_t *fill, struct tsi_canvas *c)
{
	switch (chosen) {
	case AUTO_CONTRAST:
		return tsi_colour_autocontrast(c);
	case EQUALIZE:
		return tsi_colour_equalize(c);
	case INVERT:
		return tsi_colour_invert(c);
	case ROTATE:
		return tsi_warp_rotate(c, by, filter, false, NULL, fill);
	case POSTERIZE:
		return tsi_colour_posterize(c, (unsigned)by);
	case SOLARIZE:
		return tsi_colour_solarize(c, by);
	case SOLARIZE_ADD:
		return tsi_colour_solarize_add(c, (int)by);
	case COLOR:
		return tsi_colour_saturation(c, by);
	case CONTRAST:
		return tsi_colour_contrast(c, by);
	case BRIGHTNESS:
		return tsi_colour_brightness(c, by);
	case SHARPNESS:
		return tsi_colour_sharpness(c, by);
	default:
		return warp(chosen, by, filter, fill, c);
	}
}

static int apply(const struct tsi_op *op, const double *draws,
		 struct tsi_canvas *c)
{
	uint8_t fill[3];
	int err = 0;

	tsi_sizes_fill(&op->arg[FILL], fill);
	for (unsigned k = 0; k < (unsigned)tsi_op_number(op, N) && !err;
	     k++, draws += EACH)
		if (draws[OP] >= 0)
			err = apply_one((unsigned)draws[OP], draws[BY],
					(enum tsi_warp_filter)draws[WITH], fill,
					c);
	return err;
}

const struct tsi_op_type tsi_op_timm_rand_augment = {
	.name = "TimmRandAugment",
	.args = args,
	.help = "timm's RandAugment: rand-m9-mstd0.5-inc1 is m=9, mstd=0.5, "
		"inc=True; fill is the mean colour, in bytes",
	.check = check,
	.count = count,
	.draws = "for each of n layers: which operation, of timm's 15 from 0, "
		 "or "
		 "-1 if none is done; its argument; nearest, bilinear or "
		 "bicubic, from 0",
	.draw = draw,
	.apply = apply,
};
