/* SPDX-License-Identifier: MIT */
/*
 * plan.c - what of an image is decoded for a sample, and what goes where.
 */
#include "image/plan.h"

/* The least part of the image that holds those of all views. */
static struct tsi_framing part_of_all(const struct tsi_image_plan *p,
				      uint32_t width, uint32_t height)
{
	static const uint8_t black[3];
	struct tsi_framing g = tsi_framing_of(width, height);
	uint32_t left = width, top = height, right = 0, bottom = 0;

	for (unsigned k = 0; k < p->views; k++) {
		const struct tsi_rect *r = &p->view[k].framing.part;

		left = r->left < left ? r->left : left;
		top = r->top < top ? r->top : top;
		if (r->left + r->width > right)
			right = r->left + r->width;
		if (r->top + r->height > bottom)
			bottom = r->top + r->height;
	}
	tsi_framing_crop(&g, left, top, right - left, bottom - top, black);
	return g;
}

int tsi_image_plan_make(const struct tsi_recipe *r,
			const struct tsi_op_sample *sample, double *draws,
			struct tsi_image_plan *out)
{
	struct tsi_op_sample s = *sample;
	int err = tsi_recipe_draw(r, &s, draws);

	if (err)
		return err;
	out->most = s.most;
	out->views = r->views;
	for (unsigned k = 0; k < r->views; k++)
		out->view[k].rest = tsi_recipe_plan(&r->view[k], sample->width,
						    sample->height, draws,
						    &out->view[k].framing);
	out->framing = r->views > 1
			       ? part_of_all(out, sample->width, sample->height)
			       : out->view[0].framing;
	tsi_framing_axes(&out->framing, &out->axes);
	out->left = out->framing.part.left;
	out->top = out->framing.part.top;
	return 0;
}

bool tsi_image_plan_is_all(const struct tsi_image_plan *p)
{
	return p->views == 1 && !p->view[0].rest && !p->framing.mirror_y;
}
