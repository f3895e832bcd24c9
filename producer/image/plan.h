/* SPDX-License-Identifier: MIT */
/*
 * plan.h - what of an image is decoded for a sample, and what goes where.
 */
#ifndef TSI_IMAGE_PLAN_H
#define TSI_IMAGE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "pixel/image.h"
#include "recipe/recipe.h"

/* How a view is made: geometry first, and then what is left of its recipe. */
struct tsi_view_plan {
	struct tsi_framing framing;
	const struct tsi_op *rest;
};

/*
 * What is to be decoded, and what of it goes where in a picture: one view, or
 * the part of the image that several views are made of.
 */
struct tsi_image_plan {
	struct tsi_framing_axes axes;
	uint32_t left; /* of the part in the source image */
	uint32_t top;
	struct tsi_framing framing;
	uint64_t most; /* pixels that a picture has on the way */
	unsigned views;
	struct tsi_view_plan view[TSI_RECIPE_VIEWS];
};

/*
 * What the recipe says of an image of this sample's size: the draws, then the
 * plan.  Fails as tsi_recipe_draw() does.
 */
int tsi_image_plan_make(const struct tsi_recipe *r,
			const struct tsi_op_sample *sample, double *draws,
			struct tsi_image_plan *out);

/* Is the only view finished once it is decoded? */
bool tsi_image_plan_is_all(const struct tsi_image_plan *p);

#endif
