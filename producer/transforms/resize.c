/* SPDX-License-Identifier: MIT */
/*
 * resize.c - Resize and RandomResize.
 *
 * Formulas: torchvision.transforms.functional._compute_resized_output_size,
 * v2's RandomResize.make_params.
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

/* Can a picture of this size become w x h, whose short edge was asked for? */
static int check_edges(uint32_t width, uint32_t height, double w, double h,
		       double shorter)
{
	if (w >= 1 && h >= 1 && w <= INT32_MAX && h <= INT32_MAX)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%u x %u pixels are too thin to resize to a short edge "
		       "of %g",
		       width, height, shorter);
}

static int draw(const struct tsi_op *op, struct tsi_words *words,
		uint32_t width, uint32_t height, double *draws)
{
	double w, h;

	(void)words;
	(void)draws;
	edges(op, width, height, &w, &h);
	return check_edges(width, height, w, h,
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

/* ------------------------------------------------------------------------
 * RandomResize
 */

enum { LEAST, MOST, RANDOM_FILTER, RANDOM_ANTIALIAS };

#define SHORT_EDGE(what) \
	{ \
		.name = what, .kind = TSI_ARG_WHOLE, .min = 1, \
		.max = TSI_SIZE_MAX \
	}

static const struct tsi_arg random_args[] = {
	[LEAST] = SHORT_EDGE("min_size"),
	[MOST] = SHORT_EDGE("max_size"),
	[RANDOM_FILTER] = { .name = "interpolation",
			    .kind = TSI_ARG_FILTER,
			    .value = "bilinear" },
	[RANDOM_ANTIALIAS] = TSI_ARG_ANTIALIAS,
	{ 0 },
};

static bool check_random(struct tsi_op *op, const char **why)
{
	if (tsi_op_number(op, LEAST) < tsi_op_number(op, MOST))
		return tsi_sizes_antialias(&op->arg[RANDOM_ANTIALIAS], why);
	*why = "max_size, which is never drawn, must be above min_size";
	return false;
}

static void random_edges(double shorter, uint32_t width, uint32_t height,
			 double *w, double *h)
{
	if (width > height) {
		*w = part_of(shorter, width, height);
		*h = shorter;
	} else {
		*w = shorter;
		*h = part_of(shorter, height, width);
	}
}

static int draw_random(const struct tsi_op *op, struct tsi_words *words,
		       uint32_t width, uint32_t height, double *draws)
{
	const uint32_t least = (uint32_t)tsi_op_number(op, LEAST);
	const uint32_t most = (uint32_t)tsi_op_number(op, MOST);
	double w, h;

	draws[0] = least + tsi_words_below(words, most - least);
	random_edges(draws[0], width, height, &w, &h);
	return check_edges(width, height, w, h, draws[0]);
}

static bool plan_random(const struct tsi_op *op, const double *draws,
			struct tsi_framing *g)
{
	double w, h;

	random_edges(draws[0], g->width, g->height, &w, &h);
	return tsi_framing_resize(
		g, (uint32_t)w, (uint32_t)h,
		(enum tsi_filter)tsi_op_number(op, RANDOM_FILTER));
}

static void size_random(const struct tsi_op *op, struct tsi_op_size *s)
{
	(void)op;
	s->known = false;
}

const struct tsi_op_type tsi_op_random_resize = {
	.name = "RandomResize",
	.args = random_args,
	.help = "to a random short edge from min_size on and below max_size",
	.check = check_random,
	.count = tsi_sizes_one,
	.draws = "the short edge",
	.size = size_random,
	.draw = draw_random,
	.plan = plan_random,
	.moves = true,
};
