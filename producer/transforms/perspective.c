/* SPDX-License-Identifier: MIT */
/*
 * perspective.c - RandomPerspective.
 *
 * Formula: torchvision.transforms.RandomPerspective.get_params.
 */
#include "ops/mask_warp.h"
#include "ops/warp.h"
#include "ops/warp_map.h"
#include "transforms/op.h"
#include "transforms/sizes.h"
#include "transforms/warps.h"

enum { DISTORTION, P, FILTER, FILL, MASK_FILL };

static const struct tsi_arg args[] = {
	[DISTORTION] = { .name = "distortion_scale",
			 .kind = TSI_ARG_NUMBER,
			 .value = "0.5",
			 .min = 0,
			 .max = 1 },
	[P] = TSI_ARG_P("0.5"),
	[FILTER] = TSI_ARG_WARP_FILTER("bilinear"),
	[FILL] = TSI_ARG_FILL,
	[MASK_FILL] = TSI_ARG_MASK_FILL,
	{ 0 },
};

static bool check(struct tsi_op *op, const char **why)
{
	return tsi_warps_filter(&op->arg[FILTER], why);
}

static unsigned count(const struct tsi_op *op)
{
	(void)op;
	return 9;
}

/* A whole number from 0 to most, or from edge - most - 1 to edge - 1. */
static double near_side(struct tsi_words *w, uint32_t most)
{
	return tsi_words_below(w, most + 1);
}

static double far_side(struct tsi_words *w, uint32_t most, uint32_t edge)
{
	/* That side has as many places; of an edge of 1 there is one. */
	uint32_t from = edge > most + 1 ? edge - most - 1 : 0;

	return from + tsi_words_below(w, edge - from);
}

static int draw(const struct tsi_op *op, struct tsi_words *w, uint32_t width,
		uint32_t height, double *draws)
{
	const double by = tsi_op_number(op, DISTORTION);
	const uint32_t x = (uint32_t)(by * (width / 2));
	const uint32_t y = (uint32_t)(by * (height / 2));

	draws[0] = tsi_words_chance(w, tsi_op_number(op, P));
	if (draws[0] == 0)
		return 0;
	draws[1] = near_side(w, x);
	draws[2] = near_side(w, y);
	draws[3] = far_side(w, x, width);
	draws[4] = near_side(w, y);
	draws[5] = far_side(w, x, width);
	draws[6] = far_side(w, y, height);
	draws[7] = near_side(w, x);
	draws[8] = far_side(w, y, height);
	return 0;
}

/*
 * The map of what was drawn for a picture of this size.  False: there is none
 * for one of one row or column, which stays as it is.
 */
static bool map_of(const double *draws, uint32_t width, uint32_t height,
		   double m[8])
{
	const double right = width - 1.0, bottom = height - 1.0;
	const tsi_warp_point start[4] = {
		{ 0, 0 }, { right, 0 }, { right, bottom }, { 0, bottom }
	};
	const tsi_warp_point end[4] = { { draws[1], draws[2] },
					{ draws[3], draws[4] },
					{ draws[5], draws[6] },
					{ draws[7], draws[8] } };

	return tsi_warp_map_perspective(start, end, m);
}

static int apply(const struct tsi_op *op, const double *draws,
		 struct tsi_canvas *c)
{
	uint8_t fill[3];
	double m[8];

	if (draws[0] == 0 || !map_of(draws, c->width, c->height, m))
		return 0;
	tsi_sizes_fill(&op->arg[FILL], fill);
	return tsi_warp_perspective(
		c, m, (enum tsi_filter)tsi_op_number(op, FILTER), fill);
}

static int mask(const struct tsi_op *op, const double *draws,
		struct tsi_mask *m)
{
	double map[8];

	if (draws[0] == 0 || !map_of(draws, m->width, m->height, map))
		return 0;
	return tsi_mask_perspective(
		m, map,
		tsi_sizes_mask_fill(&op->arg[MASK_FILL], &op->arg[FILL]));
}

static void boxes(const struct tsi_op *op, const double *draws,
		  struct tsi_boxes *b)
{
	double map[8];

	(void)op;
	if (draws[0] != 0 && map_of(draws, b->width, b->height, map))
		tsi_boxes_perspective(b, map);
}

const struct tsi_op_type tsi_op_random_perspective = {
	.name = "RandomPerspective",
	.args = args,
	.help = "seen from elsewhere, with probability p (3 bytes in 10^8 "
		"differ "
		"by 1)",
	.check = check,
	.count = count,
	.draws = "1 if it is done; x and y of the four corners, from the top "
		 "left one clockwise",
	.draw = draw,
	.sized = true,
	.apply = apply,
	.mask = mask,
	.boxes = boxes,
};
