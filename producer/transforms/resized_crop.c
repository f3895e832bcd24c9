/* SPDX-License-Identifier: MIT */
/*
 * resized_crop.c - RandomResizedCrop.
 *
 * Formulas: torchvision.transforms.RandomResizedCrop.get_params.
 */
#include "transforms/resized_crop.h"

#include <math.h>

#include "transforms/sizes.h"

#define ATTEMPTS 10

enum { SIZE, SCALE, RATIO, FILTER, ANTIALIAS };
enum { TOP, LEFT, HEIGHT, WIDTH };

/* torch.log() of float32. */
static float log_of(double ratio)
{
	return (float)log((double)(float)ratio);
}

bool tsi_crop_try(const struct tsi_crop_range *range, uint32_t width,
		  uint32_t height, uint32_t area_word, uint32_t ratio_word,
		  struct tsi_crop_box *box)
{
	double area =
		(double)width * height *
		(double)tsi_draw_uniform(area_word, (float)range->scale[0],
					 (float)range->scale[1]);
	/*
	 * In double and rounded once: the float functions of different
	 * libraries and processors differ in the last bit.
	 */
	double ratio = (float)exp((double)tsi_draw_uniform(
		ratio_word, log_of(range->ratio[0]), log_of(range->ratio[1])));
	double w = rint(sqrt(area * ratio));
	double h = rint(sqrt(area / ratio));

	if (!(w > 0 && w <= width && h > 0 && h <= height))
		return false;
	box->width = (uint32_t)w;
	box->height = (uint32_t)h;
	return true;
}

/* round() of Python; not 0, and not beyond the picture's edge. */
static uint32_t within(double edge, uint32_t most)
{
	double v = rint(edge);

	return v < 1 ? 1 : v > most ? most : (uint32_t)v;
}

void tsi_crop_fallback(const struct tsi_crop_range *range, uint32_t width,
		       uint32_t height, struct tsi_crop_box *box)
{
	double low = range->ratio[0], high = range->ratio[1];
	double ratio = (double)width / (double)height;

	box->width = width;
	box->height = height;
	if (ratio < low)
		box->height = within(width / low, height);
	else if (ratio > high)
		box->width = within(height * high, width);
	box->top = (height - box->height) / 2;
	box->left = (width - box->width) / 2;
}

void tsi_crop_draw(const struct tsi_crop_range *range, struct tsi_words *w,
		   uint32_t width, uint32_t height, struct tsi_crop_box *box)
{
	for (uint32_t i = 0; i < ATTEMPTS; i++) {
		uint32_t area, ratio, top, left;

		tsi_words_skip(w);
		area = tsi_words_next(w);
		ratio = tsi_words_next(w);
		top = tsi_words_next(w);
		left = tsi_words_next(w);
		if (!tsi_crop_try(range, width, height, area, ratio, box))
			continue;
		box->top = top % (height - box->height + 1);
		box->left = left % (width - box->width + 1);
		return;
	}
	tsi_crop_fallback(range, width, height, box);
}

/* Rows from the first one on that any of a range's boxes needs at least. */
static uint32_t rows_needed(const struct tsi_crop_range *range, uint32_t width,
			    uint32_t height)
{
	/*
	 * The height's square is at least the least area over the largest
	 * ratio.  A fallback's box is as wide as the image allows: it is
	 * higher, or reaches the last row.
	 */
	double least = sqrt(range->scale[0] / range->ratio[1] * width * height);

	least = least * (1 - 1e-6) - 1;
	if (!(least >= 1))
		return 1;
	return least < height ? (uint32_t)least : height;
}

/* ------------------------------------------------------------------------
 * The operation
 */

#define TSI_ARG_SCALE \
	{ \
		.name = "scale", .kind = TSI_ARG_NUMBER, .value = "(0.08, 1)", \
		.least = 2, .min = 0, .max = 1 \
	}
#define TSI_ARG_RATIO \
	{ \
		.name = "ratio", .kind = TSI_ARG_NUMBER, \
		.value = "(3/4, 4/3)", .least = 2, .min = 1e-3, .max = 1e3 \
	}

static const struct tsi_arg args[] = {
	[SIZE] = TSI_ARG_SIZE,
	[SCALE] = TSI_ARG_SCALE,
	[RATIO] = TSI_ARG_RATIO,
	[FILTER] = { .name = "interpolation",
		     .kind = TSI_ARG_FILTER,
		     .value = "bilinear" },
	[ANTIALIAS] = TSI_ARG_ANTIALIAS,
	{ 0 },
};

static struct tsi_crop_range range_of(const struct tsi_op *op)
{
	const struct tsi_arg_value *s = &op->arg[SCALE], *r = &op->arg[RATIO];

	return (struct tsi_crop_range){ { s->v[0], s->v[1] },
					{ r->v[0], r->v[1] } };
}

static bool check_ranges(struct tsi_op *op, const char **why)
{
	const struct tsi_crop_range range = range_of(op);

	tsi_sizes_pair(&op->arg[SIZE]);
	if (range.scale[0] > range.scale[1])
		*why = "scale is (least, most)";
	else if (range.ratio[0] > range.ratio[1])
		*why = "ratio is (least, most)";
	else
		return true;
	return false;
}

static bool check(struct tsi_op *op, const char **why)
{
	return check_ranges(op, why) &&
	       tsi_sizes_antialias(&op->arg[ANTIALIAS], why);
}

static unsigned count(const struct tsi_op *op)
{
	(void)op;
	return 4;
}

static int draw(const struct tsi_op *op, struct tsi_words *w, uint32_t width,
		uint32_t height, double *draws)
{
	const struct tsi_crop_range range = range_of(op);
	struct tsi_crop_box box;

	tsi_crop_draw(&range, w, width, height, &box);
	draws[TOP] = box.top;
	draws[LEFT] = box.left;
	draws[HEIGHT] = box.height;
	draws[WIDTH] = box.width;
	return 0;
}

static bool plan_box(const struct tsi_op *op, const double *draws,
		     enum tsi_filter filter, struct tsi_framing *g)
{
	static const uint8_t black[3];
	struct tsi_framing to = *g;

	if (!tsi_framing_crop(&to, (int64_t)draws[LEFT], (int64_t)draws[TOP],
			      (uint32_t)draws[WIDTH], (uint32_t)draws[HEIGHT],
			      black) ||
	    !tsi_framing_resize(&to, (uint32_t)op->arg[SIZE].v[1],
				(uint32_t)op->arg[SIZE].v[0], filter))
		return false;
	*g = to;
	return true;
}

static bool plan(const struct tsi_op *op, const double *draws,
		 struct tsi_framing *g)
{
	return plan_box(op, draws, (enum tsi_filter)tsi_op_number(op, FILTER),
			g);
}

static uint32_t least_rows(const struct tsi_op *op, bool nearest,
			   uint32_t width, uint32_t height)
{
	const struct tsi_crop_range range = range_of(op);
	uint32_t n = rows_needed(&range, width, height);

	/* NEAREST takes the middle of the last of equal parts of a crop. */
	return nearest ? n - n / 2 : n;
}

static uint32_t least_bottom(const struct tsi_op *op, uint32_t width,
			     uint32_t height)
{
	return least_rows(op, tsi_op_number(op, FILTER) == TSI_FILTER_NEAREST,
			  width, height);
}

static void size(const struct tsi_op *op, struct tsi_op_size *s)
{
	tsi_sizes_fixed(&op->arg[SIZE], s);
}

const struct tsi_op_type tsi_op_random_resized_crop = {
	.name = "RandomResizedCrop",
	.args = args,
	.help = "a random box of scale times the area, resized to size",
	.check = check,
	.count = count,
	.draws = "top, left, height, width of the box",
	.size = size,
	.draw = draw,
	.sized = true,
	.plan = plan,
	.moves = true,
	.least_bottom = least_bottom,
};

/* ------------------------------------------------------------------------
 * timm's, whose interpolation may be drawn, too
 */

enum { TIMM_FILTER = 4 }; /* among the draws */

static const struct tsi_arg timm_args[] = {
	[SIZE] = TSI_ARG_SIZE,
	[SCALE] = TSI_ARG_SCALE,
	[RATIO] = TSI_ARG_RATIO,
	[FILTER] = TSI_ARG_RANDOM_FILTER("random"),
	{ 0 },
};

static bool check_timm(struct tsi_op *op, const char **why)
{
	return check_ranges(op, why);
}

static unsigned count_timm(const struct tsi_op *op)
{
	(void)op;
	return TIMM_FILTER + 1;
}

static int draw_timm(const struct tsi_op *op, struct tsi_words *w,
		     uint32_t width, uint32_t height, double *draws)
{
	int err = draw(op, w, width, height, draws);

	draws[TIMM_FILTER] = tsi_sizes_draw_filter(op, FILTER, w);
	return err;
}

static bool plan_timm(const struct tsi_op *op, const double *draws,
		      struct tsi_framing *g)
{
	return plan_box(op, draws, (enum tsi_filter)draws[TIMM_FILTER], g);
}

static uint32_t least_bottom_timm(const struct tsi_op *op, uint32_t width,
				  uint32_t height)
{
	/* "random" is the first of its words. */
	return least_rows(op,
			  tsi_op_number(op, FILTER) == 1 + TSI_FILTER_NEAREST,
			  width, height);
}

const struct tsi_op_type tsi_op_timm_resized_crop = {
	.name = "RandomResizedCropAndInterpolation",
	.args = timm_args,
	.help = "timm's: as RandomResizedCrop; random is bilinear or bicubic",
	.check = check_timm,
	.count = count_timm,
	.draws = "top, left, height, width of the box; the interpolation, of "
		 "bilinear, nearest, box, hamming, bicubic and lanczos from 0",
	.size = size,
	.draw = draw_timm,
	.sized = true,
	.plan = plan_timm,
	.moves = true,
	.least_bottom = least_bottom_timm,
};
