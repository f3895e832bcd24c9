/* SPDX-License-Identifier: MIT */
/*
 * flip.c - RandomHorizontalFlip and RandomVerticalFlip.
 */
#include "transforms/op.h"
#include "transforms/sizes.h"

static const struct tsi_arg args[] = { TSI_ARG_P("0.5"), { 0 } };

static int draw(const struct tsi_op *op, struct tsi_words *w, uint32_t width,
		uint32_t height, double *draws)
{
	(void)width;
	(void)height;
	draws[0] = tsi_words_chance(w, tsi_op_number(op, 0));
	return 0;
}

static bool plan_x(const struct tsi_op *op, const double *draws,
		   struct tsi_framing *g)
{
	(void)op;
	return tsi_framing_flip(g, draws[0] != 0, false);
}

static bool plan_y(const struct tsi_op *op, const double *draws,
		   struct tsi_framing *g)
{
	(void)op;
	return tsi_framing_flip(g, false, draws[0] != 0);
}

const struct tsi_op_type tsi_op_horizontal_flip = {
	.name = "RandomHorizontalFlip",
	.args = args,
	.help = "mirrored left to right, with probability p",
	.count = tsi_sizes_one,
	.draws = "1 if mirrored",
	.draw = draw,
	.plan = plan_x,
};

const struct tsi_op_type tsi_op_vertical_flip = {
	.name = "RandomVerticalFlip",
	.args = args,
	.help = "turned upside down, with probability p",
	.count = tsi_sizes_one,
	.draws = "1 if turned",
	.draw = draw,
	.plan = plan_y,
};
