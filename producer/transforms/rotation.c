/* SPDX-License-Identifier: MIT */
/*
 * rotation.c - RandomRotation and RandomAffine.
 *
 * Formulas: torchvision.transforms.RandomRotation.get_params and
 * RandomAffine.get_params.
 */
#include <math.h>
#include <string.h>

#include "ops/mask_warp.h"
#include "ops/warp.h"
#include "ops/warp_map.h"
#include "transforms/op.h"
#include "transforms/sizes.h"
#include "transforms/warps.h"

#define DEGREES \
	{ \
		.name = "degrees", .kind = TSI_ARG_NUMBER, .least = 1, \
		.most = 2, .min = -1e6, .max = 1e6 \
	}

/* ------------------------------------------------------------------------
 * RandomRotation
 */

enum { DEGREES_ARG, FILTER, EXPAND, CENTER, FILL, MASK_FILL };

static const struct tsi_arg rotation_args[] = {
	[DEGREES_ARG] = DEGREES,
	[FILTER] = TSI_ARG_WARP_FILTER("nearest"),
	[EXPAND] = { .name = "expand",
		     .kind = TSI_ARG_SWITCH,
		     .value = "False" },
	[CENTER] = TSI_ARG_CENTER,
	[FILL] = TSI_ARG_FILL,
	[MASK_FILL] = TSI_ARG_MASK_FILL,
	{ 0 },
};

static bool check_rotation(struct tsi_op *op, const char **why)
{
	return tsi_warps_range(&op->arg[DEGREES_ARG], why) &&
	       tsi_warps_filter(&op->arg[FILTER], why);
}

static int draw_rotation(const struct tsi_op *op, struct tsi_words *w,
			 uint32_t width, uint32_t height, double *draws)
{
	(void)width;
	(void)height;
	draws[0] = tsi_warps_draw(w, &op->arg[DEGREES_ARG], 0);
	return 0;
}

static const double *centre_of(const struct tsi_arg_value *v)
{
	return v->n ? v->v : NULL;
}

static bool expands(const struct tsi_op *op)
{
	return tsi_op_number(op, EXPAND) != 0;
}

static void size_rotation(const struct tsi_op *op, struct tsi_op_size *s)
{
	if (expands(op))
		s->known = false;
}

static void after_rotation(const struct tsi_op *op, const double *draws,
			   uint32_t *width, uint32_t *height)
{
	double m[6];
	/* As Python's modulo: 0 or above. */
	double degrees = fmod(fmod(draws[0], 360) + 360, 360);

	if (expands(op))
		tsi_warp_map_rotation(degrees, centre_of(&op->arg[CENTER]),
				      true, width, height, m);
}

static int apply_rotation(const struct tsi_op *op, const double *draws,
			  struct tsi_canvas *c)
{
	uint8_t fill[3];

	tsi_sizes_fill(&op->arg[FILL], fill);
	return tsi_warp_rotate(c, draws[0],
			       (enum tsi_filter)tsi_op_number(op, FILTER),
			       expands(op), centre_of(&op->arg[CENTER]), fill);
}

static int mask_rotation(const struct tsi_op *op, const double *draws,
			 struct tsi_mask *m)
{
	return tsi_mask_rotate(
		m, draws[0], centre_of(&op->arg[CENTER]),
		tsi_sizes_mask_fill(&op->arg[MASK_FILL], &op->arg[FILL]));
}

static void boxes_rotation(const struct tsi_op *op, const double *draws,
			   struct tsi_boxes *b)
{
	tsi_boxes_rotate(b, draws[0], centre_of(&op->arg[CENTER]));
}

/* v2 expands tensors to other sizes than Pillow does pictures. */
static const char *unmasked(const struct tsi_op *op)
{
	return expands(op) ? "with expand=True" : NULL;
}

const struct tsi_op_type tsi_op_random_rotation = {
	.name = "RandomRotation",
	.args = rotation_args,
	.help = "turned by up to degrees, or from (least, most)",
	.check = check_rotation,
	.count = tsi_sizes_one,
	.draws = "degrees, counter-clockwise",
	.size = size_rotation,
	.draw = draw_rotation,
	.after = after_rotation,
	.apply = apply_rotation,
	.mask = mask_rotation,
	.boxes = boxes_rotation,
	.unmasked = unmasked,
};

/* ------------------------------------------------------------------------
 * RandomAffine
 */

enum {
	TRANSLATE = 1,
	SCALE,
	SHEAR,
	AFFINE_FILTER,
	AFFINE_FILL,
	AFFINE_CENTER,
	AFFINE_MASK_FILL,
};
enum { ANGLE, TX, TY, SIZE, SHEAR_X, SHEAR_Y, DRAWS };

static const struct tsi_arg affine_args[] = {
	[DEGREES_ARG] = DEGREES,
	[TRANSLATE] = { .name = "translate",
			.kind = TSI_ARG_NUMBER,
			.value = "None",
			.least = 2,
			.most = 2,
			.min = 0,
			.max = 1,
			.none = true },
	[SCALE] = { .name = "scale",
		    .kind = TSI_ARG_NUMBER,
		    .value = "None",
		    .least = 2,
		    .most = 2,
		    .min = 1e-3,
		    .max = 1e3,
		    .none = true },
	[SHEAR] = { .name = "shear",
		    .kind = TSI_ARG_NUMBER,
		    .value = "None",
		    .least = 1,
		    .most = 4,
		    .min = -89,
		    .max = 89,
		    .none = true },
	[AFFINE_FILTER] = TSI_ARG_WARP_FILTER("nearest"),
	[AFFINE_FILL] = TSI_ARG_FILL,
	[AFFINE_CENTER] = TSI_ARG_CENTER,
	[AFFINE_MASK_FILL] = TSI_ARG_MASK_FILL,
	{ 0 },
};

static bool check_affine(struct tsi_op *op, const char **why)
{
	struct tsi_arg_value *shear = &op->arg[SHEAR];
	const struct tsi_arg_value *scale = &op->arg[SCALE];

	if (shear->n == 1 && !tsi_warps_range(shear, why))
		return false;
	if (shear->n == 3)
		*why = "shear has 1, 2 or 4 numbers";
	else if (shear->n && (shear->v[0] > shear->v[1] ||
			      (shear->n == 4 && shear->v[2] > shear->v[3])))
		*why = "shear is (least, most), or that for x and for y";
	else if (scale->n && scale->v[0] > scale->v[1])
		*why = "scale is (least, most)";
	else
		return tsi_warps_range(&op->arg[DEGREES_ARG], why) &&
		       tsi_warps_filter(&op->arg[AFFINE_FILTER], why);
	return false;
}

static unsigned count_affine(const struct tsi_op *op)
{
	(void)op;
	return DRAWS;
}

/* Python's int(round(x)) of a float32 from -most to most. */
static double pixels(struct tsi_words *w, double most)
{
	return rint((double)tsi_words_uniform(w, (float)-most, (float)most));
}

static int draw_affine(const struct tsi_op *op, struct tsi_words *w,
		       uint32_t width, uint32_t height, double *draws)
{
	const struct tsi_arg_value *by = &op->arg[TRANSLATE];
	const struct tsi_arg_value *shear = &op->arg[SHEAR];

	draws[ANGLE] = tsi_warps_draw(w, &op->arg[DEGREES_ARG], 0);
	if (by->n) {
		draws[TX] = pixels(w, by->v[0] * width);
		draws[TY] = pixels(w, by->v[1] * height);
	}
	draws[SIZE] =
		op->arg[SCALE].n ? tsi_warps_draw(w, &op->arg[SCALE], 0) : 1;
	if (shear->n)
		draws[SHEAR_X] = tsi_warps_draw(w, shear, 0);
	if (shear->n == 4)
		draws[SHEAR_Y] = tsi_warps_draw(w, shear, 2);
	return 0;
}

static struct tsi_warp_affinity affinity_of(const double *draws, double width,
					    double height)
{
	return (struct tsi_warp_affinity){
		.degrees = draws[ANGLE],
		.translate = { draws[TX], draws[TY] },
		.scale = draws[SIZE],
		.shear = { draws[SHEAR_X], draws[SHEAR_Y] },
		.centre = { width * 0.5, height * 0.5 },
	};
}

static int mask_affine(const struct tsi_op *op, const double *draws,
		       struct tsi_mask *m)
{
	const struct tsi_warp_affinity a =
		affinity_of(draws, m->width, m->height);

	return tsi_mask_affine(m, &a, centre_of(&op->arg[AFFINE_CENTER]),
			       tsi_sizes_mask_fill(&op->arg[AFFINE_MASK_FILL],
						   &op->arg[AFFINE_FILL]));
}

static void boxes_affine(const struct tsi_op *op, const double *draws,
			 struct tsi_boxes *b)
{
	const struct tsi_warp_affinity a =
		affinity_of(draws, b->width, b->height);

	tsi_boxes_affine(b, &a, centre_of(&op->arg[AFFINE_CENTER]));
}

static int apply_affine(const struct tsi_op *op, const double *draws,
			struct tsi_canvas *c)
{
	const struct tsi_arg_value *centre = &op->arg[AFFINE_CENTER];
	struct tsi_warp_affinity a = affinity_of(draws, c->width, c->height);
	uint8_t fill[3];
	double m[6];

	if (centre->n)
		memcpy(a.centre, centre->v, sizeof(a.centre));
	tsi_warp_map_affine(&a, m);
	tsi_sizes_fill(&op->arg[AFFINE_FILL], fill);
	return tsi_warp_affine(
		c, c->width, c->height, m,
		(enum tsi_filter)tsi_op_number(op, AFFINE_FILTER), fill);
}

const struct tsi_op_type tsi_op_random_affine = {
	.name = "RandomAffine",
	.args = affine_args,
	.help = "turned, moved, scaled and sheared",
	.check = check_affine,
	.count = count_affine,
	.draws = "degrees, x and y in pixels, scale, degrees of shear in x and "
		 "y",
	.draw = draw_affine,
	.sized = true,
	.apply = apply_affine,
	.mask = mask_affine,
	.boxes = boxes_affine,
};
