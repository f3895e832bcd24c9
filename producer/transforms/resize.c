/* SPDX-License-Identifier: MIT */
/*
 * resize.c - Resize.
 *
 * Formula: torchvision.transforms.functional._compute_resized_output_size.
 */
#include <limits.h>
#include <stdlib.h>

#include "base/err.h"
#include "transforms/op.h"
#include "transforms/sizes.h"

enum { SIZE, FILTER, MAX_SIZE, ANTIALIAS };

static const struct tsi_arg args[] = {
	[SIZE] = { .name = "size",
		   .kind = TSI_ARG_WHOLE,
		   .least = 1,
		   .most = 2,
		   .min = 1,
		   .max = TSI_SIZE_MAX,
		   .none = true },
	[FILTER] = { .name = "interpolation",
		     .kind = TSI_ARG_FILTER,
		     .value = "bilinear" },
	[MAX_SIZE] = { .name = "max_size",
		       .kind = TSI_ARG_WHOLE,
		       .value = "None",
		       .min = 1,
		       .max = TSI_SIZE_MAX,
		       .none = true },
	[ANTIALIAS] = TSI_ARG_ANTIALIAS,
	{ 0 },
};

static bool check(struct tsi_op *op, const char **why)
{
	const struct tsi_arg_value *size = &op->arg[SIZE];
	const struct tsi_arg_value *most = &op->arg[MAX_SIZE];

	if (size->n == 2 && most->n)
		*why = "max_size is for a size of one number, the short edge";
	else if (!size->n && !most->n)
		*why = "size or max_size is wanted";
	else if (size->n && most->n && most->v[0] <= size->v[0])
		*why = "max_size must be above size";
	else
		return tsi_sizes_antialias(&op->arg[ANTIALIAS], why);
	return false;
}

/* Python divides whole numbers as doubles and truncates. */
static double part_of(double size, double other, double edge)
{
	return (double)(int64_t)(size * other / edge);
}

static void edges(const struct tsi_op *op, uint32_t width, uint32_t height,
		  double *w, double *h)
{
	const struct tsi_arg_value *size = &op->arg[SIZE];
	const struct tsi_arg_value *most = &op->arg[MAX_SIZE];
	const bool wide = width > height;
	const double shorter = wide ? height : width;
	const double longer = wide ? width : height;
	double to_short, to_long;

	if (size->n == 2) {
		*h = size->v[0];
		*w = size->v[1];
		return;
	}
	if (size->n) {
		to_short = size->v[0];
		to_long = part_of(to_short, longer, shorter);
	} else {
		to_short = part_of(most->v[0], shorter, longer);
		to_long = most->v[0];
	}
	if (size->n && most->n && to_long > most->v[0]) {
		to_short = part_of(most->v[0], to_short, to_long);
		to_long = most->v[0];
	}
	*w = wide ? to_long : to_short;
	*h = wide ? to_short : to_long;
}

static int draw(const struct tsi_op *op, struct tsi_words *words,
		uint32_t width, uint32_t height, double *draws)
{
	double w, h;

	(void)words;
	(void)draws;
	edges(op, width, height, &w, &h);
	if (w >= 1 && h >= 1 && w <= INT32_MAX && h <= INT32_MAX)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%u x %u pixels are too thin to resize to a short edge "
		       "of %g",
		       width, height,
		       op->arg[SIZE].n ? op->arg[SIZE].v[0] : 1.0);
}

static bool plan(const struct tsi_op *op, const double *draws,
		 struct tsi_framing *g)
{
	double w, h;

	(void)draws;
	edges(op, g->width, g->height, &w, &h);
	return tsi_framing_resize(g, (uint32_t)w, (uint32_t)h,
				  (enum tsi_filter)tsi_op_number(op, FILTER));
}

static void size(const struct tsi_op *op, struct tsi_op_size *s)
{
	double w, h;

	s->known = s->known || op->arg[SIZE].n == 2;
	if (!s->known)
		return;
	edges(op, s->width, s->height, &w, &h);
	s->width = w < TSI_SIZE_MAX + 1 ? (uint32_t)w : TSI_SIZE_MAX + 1;
	s->height = h < TSI_SIZE_MAX + 1 ? (uint32_t)h : TSI_SIZE_MAX + 1;
}

const struct tsi_op_type tsi_op_resize = {
	.name = "Resize",
	.args = args,
	.help = "to a short edge of size, or to size=(height, width)",
	.check = check,
	.size = size,
	.draw = draw,
	.plan = plan,
};
