/* SPDX-License-Identifier: MIT */
/*
 * color_jitter.c - ColorJitter.
 *
 * Formula: torchvision.transforms.ColorJitter (_check_input, get_params).
 */
#include "ops/colour.h"
#include "transforms/op.h"
#include "transforms/warps.h"

/* In the order in which torchvision numbers them. */
enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, PARTS };

#define FACTOR(what, least_, most_) \
	{ \
		.name = what, .kind = TSI_ARG_NUMBER, .value = "0", \
		.least = 1, .most = 2, .min = least_, .max = most_, \
		.none = true \
	}

static const struct tsi_arg args[] = {
	[BRIGHTNESS] = FACTOR("brightness", 0, 1e3),
	[CONTRAST] = FACTOR("contrast", 0, 1e3),
	[SATURATION] = FACTOR("saturation", 0, 1e3),
	[HUE] = FACTOR("hue", -0.5, 0.5),
	{ 0 },
};

/* One number is a range of that width to either side of the middle; a range of
 * width 0 is none. */
static bool check(struct tsi_op *op, const char **why)
{
	for (unsigned k = 0; k < PARTS; k++) {
		struct tsi_arg_value *v = &op->arg[k];
		const double middle = k == HUE ? 0 : 1, by = v->v[0];

		if (v->n == 1 && by < 0) {
			*why = "hue is a number from 0 to 0.5, or (least, "
			       "most)";
			return false;
		}
		if (v->n == 1) {
			v->n = 2;
			v->v[0] = k != HUE && by > middle ? 0 : middle - by;
			v->v[1] = middle + by;
		}
		if (v->n && v->v[0] > v->v[1]) {
			*why = "a range is (least, most)";
			return false;
		}
		if (v->n && v->v[0] == middle && v->v[1] == middle)
			v->n = 0;
	}
	return true;
}

static unsigned count(const struct tsi_op *op)
{
	(void)op;
	return 2 * PARTS;
}

static int draw(const struct tsi_op *op, struct tsi_words *w, uint32_t width,
		uint32_t height, double *draws)
{
	unsigned order[PARTS];

	(void)width;
	(void)height;
	tsi_words_permute(w, PARTS, order);
	for (unsigned k = 0; k < PARTS; k++) {
		draws[k] = order[k];
		if (op->arg[k].n)
			draws[PARTS + k] = tsi_warps_draw(w, &op->arg[k], 0);
	}
	return 0;
}

static int change(unsigned part, double by, struct tsi_canvas *c)
{
	switch (part) {
	case BRIGHTNESS:
		return tsi_colour_brightness(c, by);
	case CONTRAST:
		return tsi_colour_contrast(c, by);
	case SATURATION:
		return tsi_colour_saturation(c, by);
	default:
		return tsi_colour_hue(c, by);
	}
}

static int apply(const struct tsi_op *op, const double *draws,
		 struct tsi_canvas *c)
{
	int err = 0;

	for (unsigned k = 0; k < PARTS && !err; k++) {
		unsigned part = (unsigned)draws[k];

		if (op->arg[part].n)
			err = change(part, draws[PARTS + part], c);
	}
	return err;
}

const struct tsi_op_type tsi_op_color_jitter = {
	.name = "ColorJitter",
	.args = args,
	.help = "brightness, contrast, saturation and hue, in a random order",
	.check = check,
	.count = count,
	.draws = "the order, of brightness, contrast, saturation and hue from "
		 "0; "
		 "the factor of each",
	.draw = draw,
	.apply = apply,
	.colours = true,
};
