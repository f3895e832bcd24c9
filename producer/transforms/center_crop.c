/* SPDX-License-Identifier: MIT */
/*
 * center_crop.c - CenterCrop.
 *
 * Formula: torchvision.transforms.functional.center_crop.
 */
#include "transforms/op.h"
#include "transforms/sizes.h"

static const struct tsi_arg args[] = { TSI_ARG_SIZE, { 0 } };

static bool check(struct tsi_op *op, const char **why)
{
	(void)why;
	return tsi_sizes_pair(&op->arg[0]);
}

static bool plan(const struct tsi_op *op, const double *draws,
		 struct tsi_framing *g)
{
	static const uint8_t black[3];
	const uint32_t height = (uint32_t)op->arg[0].v[0];
	const uint32_t width = (uint32_t)op->arg[0].v[1];

	(void)draws;
	return tsi_framing_crop(g, tsi_sizes_centre(g->width, width),
				tsi_sizes_centre(g->height, height), width,
				height, black);
}

static void size(const struct tsi_op *op, struct tsi_op_size *s)
{
	tsi_sizes_fixed(&op->arg[0], s);
}

const struct tsi_op_type tsi_op_center_crop = {
	.name = "CenterCrop",
	.args = args,
	.help = "the middle; black surrounds a smaller picture",
	.check = check,
	.size = size,
	.plan = plan,
};
