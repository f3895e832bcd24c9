/* SPDX-License-Identifier: MIT */
/*
 * preset_eval.c - the eval preset: Resize, CenterCrop.
 */
#include "base/err.h"
#include "image/crop.h"
#include "image/preset.h"

static int check_resize(const struct tsi_image_opts *o)
{
	if (!o->resize || o->resize > TSI_IMAGE_SIZE_MAX)
		return tsi_err(TSOCK_EARG, "resize is %u, must be 1 to %u",
			       o->resize, TSI_IMAGE_SIZE_MAX);
	return 0;
}

/* The part of a resized edge that lies inside the crop. */
static void plan_edge(uint32_t in, uint32_t out, int32_t from, uint32_t size,
		      struct tsi_axis *axis, uint32_t *to)
{
	*axis = (struct tsi_axis){ .in = in, .out = out };
	*to = from < 0 ? (uint32_t)-from : 0;
	axis->first = from < 0 ? 0 : (uint32_t)from;
	axis->count = out < size ? out : size;
}

static int plan(const struct tsi_preset_sample *s, uint32_t width,
		uint32_t height, struct tsi_box *box,
		struct tsi_preset_plan *out)
{
	const struct tsi_image_opts *o = s->opts;
	uint32_t w, h;
	int err = tsi_crop_eval(width, height, o->resize, o->size, &w, &h, box);

	if (err)
		return err;
	*out = (struct tsi_preset_plan){ 0 };
	plan_edge(width, w, box->left, o->size, &out->x, &out->to_x);
	plan_edge(height, h, box->top, o->size, &out->y, &out->to_y);
	return 0;
}

const struct tsi_preset tsi_preset_eval = {
	.name = "eval",
	.in_order = true,
	.same_rows = true,
	.check = check_resize,
	.plan = plan,
};
