/* SPDX-License-Identifier: MIT */
/*
 * preset_train.c - the train preset: RandomResizedCrop, RandomHorizontalFlip.
 */
#include <math.h>

#include "image/crop.h"
#include "pixel/draw.h"
#include "image/preset.h"

static const struct tsi_draw_op draws[] = {
	{ "crop", TSI_OP_CROP },
	{ "flip", TSI_OP_FLIP },
	{ 0 },
};

static int plan(const struct tsi_preset_sample *s, uint32_t width,
		uint32_t height, struct tsi_box *box,
		struct tsi_preset_plan *out)
{
	const uint32_t size = s->opts->size;

	tsi_crop_train(s->opts->seed, s->epoch, s->index, width, height, box);
	*out = (struct tsi_preset_plan){
		.x = { .in = (uint32_t)box->width,
		       .out = size,
		       .count = size,
		       .mirror = box->flip },
		.y = { .in = (uint32_t)box->height,
		       .out = size,
		       .count = size },
		.left = (uint32_t)box->left,
		.top = (uint32_t)box->top,
	};
	return 0;
}

static uint32_t least_bottom(uint32_t width, uint32_t height)
{
	/*
	 * The least area is 0.08 of the image's, the flattest box 4 to 3: the
	 * height's square is at least 0.06 of the area.  A fallback's box is
	 * higher, or reaches the last row.
	 */
	double least = sqrt(0.06 * width * height) - 1;

	if (least < 1)
		return 1;
	return least < height ? (uint32_t)least : height;
}

const struct tsi_preset tsi_preset_train = {
	.name = "train",
	.no_resize = "which crops from the whole image",
	.draws = draws,
	.plan = plan,
	.least_bottom = least_bottom,
};
