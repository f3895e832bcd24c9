/* SPDX-License-Identifier: MIT */
/*
 * blur.c - GaussianBlur, torchvision's, and PILGaussianBlur, which is Pillow's:
 * what SimCLR's and MoCo's own code and timm do.
 */
#include "ops/blur.h"
#include "transforms/op.h"
#include "transforms/sizes.h"
#include "transforms/warps.h"

/* ------------------------------------------------------------------------
 * GaussianBlur
 */

enum { KERNEL, SIGMA };

static const struct tsi_arg blur_args[] = {
	[KERNEL] = { .name = "kernel_size",
		     .kind = TSI_ARG_WHOLE,
		     .least = 1,
		     .most = 2,
		     .min = 1,
		     .max = 99 },
	[SIGMA] = { .name = "sigma",
		    .kind = TSI_ARG_NUMBER,
		    .value = "(0.1, 2)",
		    .least = 1,
		    .most = 2,
		    .min = 1e-3,
		    .max = 1e3 },
	{ 0 },
};

static bool check_blur(struct tsi_op *op, const char **why)
{
	const struct tsi_arg_value *k = &op->arg[KERNEL];
	struct tsi_arg_value *sigma = &op->arg[SIGMA];

	tsi_sizes_pair(&op->arg[KERNEL]);
	tsi_sizes_pair(sigma);
	if ((unsigned)k->v[0] % 2 == 0 || (unsigned)k->v[1] % 2 == 0)
		*why = "kernel_size is odd";
	else if (sigma->v[0] > sigma->v[1])
		*why = "sigma is (least, most)";
	else
		return true;
	return false;
}

static int draw_blur(const struct tsi_op *op, struct tsi_words *w,
		     uint32_t width, uint32_t height, double *draws)
{
	(void)width;
	(void)height;
	draws[0] = tsi_warps_draw(w, &op->arg[SIGMA], 0);
	return 0;
}

static int apply_blur(const struct tsi_op *op, const double *draws,
		      struct tsi_canvas *c)
{
	const struct tsi_arg_value *k = &op->arg[KERNEL];

	/* torchvision's size is (x, y), here alone. */
	return tsi_blur_torchvision(c, (uint32_t)k->v[0], (uint32_t)k->v[1],
				    draws[0], draws[0]);
}

const struct tsi_op_type tsi_op_gaussian_blur = {
	.name = "GaussianBlur",
	.args = blur_args,
	.help = "torchvision's blur, with a sigma from (least, most); within 1 "
		"of its bytes, some 20 in a million differ",
	.check = check_blur,
	.count = tsi_sizes_one,
	.draws = "sigma",
	.draw = draw_blur,
	.apply = apply_blur,
	.colours = true,
};

/* ------------------------------------------------------------------------
 * PILGaussianBlur
 */

enum { P, RADIUS };
enum { DONE, BY };

static const struct tsi_arg pil_args[] = {
	[P] = TSI_ARG_P("0.5"),
	[RADIUS] = { .name = "radius",
		     .kind = TSI_ARG_NUMBER,
		     .value = "(0.1, 2)",
		     .least = 1,
		     .most = 2,
		     .min = 0,
		     .max = 1e3 },
	{ 0 },
};

static bool check_pil(struct tsi_op *op, const char **why)
{
	tsi_sizes_pair(&op->arg[RADIUS]);
	if (op->arg[RADIUS].v[0] <= op->arg[RADIUS].v[1])
		return true;
	*why = "radius is (least, most)";
	return false;
}

static unsigned count_pil(const struct tsi_op *op)
{
	(void)op;
	return 2;
}

static int draw_pil(const struct tsi_op *op, struct tsi_words *w,
		    uint32_t width, uint32_t height, double *draws)
{
	const struct tsi_arg_value *r = &op->arg[RADIUS];

	(void)width;
	(void)height;
	draws[DONE] = tsi_words_chance(w, tsi_op_number(op, P));
	if (draws[DONE] != 0)
		draws[BY] = tsi_words_between(w, r->v[0], r->v[1]);
	return 0;
}

static int apply_pil(const struct tsi_op *op, const double *draws,
		     struct tsi_canvas *c)
{
	(void)op;
	if (draws[DONE] == 0)
		return 0;
	return tsi_blur_pillow(c, (float)draws[BY], (float)draws[BY]);
}

const struct tsi_op_type tsi_op_pil_gaussian_blur = {
	.name = "PILGaussianBlur",
	.args = pil_args,
	.help = "Pillow's ImageFilter.GaussianBlur, as in SimCLR, MoCo, DINO "
		"and "
		"timm, with probability p",
	.check = check_pil,
	.count = count_pil,
	.draws = "1 if it is done; the radius",
	.draw = draw_pil,
	.apply = apply_pil,
	.colours = true,
};
