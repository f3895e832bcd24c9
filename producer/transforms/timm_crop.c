/* SPDX-License-Identifier: MIT */
/*
 * timm_crop.c - timm's ResizeKeepRatio, and its crops that pad a picture which
 * is smaller: CenterCropOrPad and RandomCropOrPad.
 *
 * Formulas: timm.data.transforms, ResizeKeepRatio.get_params,
 * center_crop_or_pad, RandomCropOrPad.get_params and crop_or_pad.
 */
#include <math.h>

#include "base/err.h"
#include "ops/pad.h"
#include "transforms/op.h"
#include "transforms/sizes.h"

enum {
	SIZE,
	LONGEST,
	FILTER,
	SCALE_PROB,
	SCALE_RANGE,
	SCALE_AREA,
	ASPECT_PROB,
	ASPECT_RANGE
};
enum { TO_HEIGHT, TO_WIDTH, BY_FILTER, RESIZE_DRAWS };

#define PROB(name_) \
	{ \
		.name = name_, .kind = TSI_ARG_NUMBER, .value = "0", .min = 0, \
		.max = 1 \
	}
#define RANGE(name_, default) \
	{ \
		.name = name_, .kind = TSI_ARG_NUMBER, .value = default, \
		.least = 2, .most = 2, .min = 1e-3, .max = 1e3 \
	}

static const struct tsi_arg resize_args[] = {
	[SIZE] = TSI_ARG_SIZE,
	[LONGEST] = { .name = "longest",
		      .kind = TSI_ARG_NUMBER,
		      .value = "0",
		      .min = 0,
		      .max = 1 },
	[FILTER] = TSI_ARG_RANDOM_FILTER("bilinear"),
	[SCALE_PROB] = PROB("random_scale_prob"),
	[SCALE_RANGE] = RANGE("random_scale_range", "(0.85, 1.05)"),
	[SCALE_AREA] = { .name = "random_scale_area",
			 .kind = TSI_ARG_SWITCH,
			 .value = "False" },
	[ASPECT_PROB] = PROB("random_aspect_prob"),
	[ASPECT_RANGE] = RANGE("random_aspect_range", "(0.9, 1.11)"),
	{ 0 },
};

static bool check_resize(struct tsi_op *op, const char **why)
{
	const double *scale = op->arg[SCALE_RANGE].v;
	const double *aspect = op->arg[ASPECT_RANGE].v;

	tsi_sizes_pair(&op->arg[SIZE]);
	if (scale[0] > scale[1])
		*why = "random_scale_range is (least, most)";
	else if (aspect[0] > aspect[1])
		*why = "random_aspect_range is (least, most)";
	return !*why;
}

static unsigned count_resize(const struct tsi_op *op)
{
	(void)op;
	return RESIZE_DRAWS;
}

/* What both edges are multiplied by, beyond what the ratio says. */
static void draw_factors(const struct tsi_op *op, struct tsi_words *w,
			 double *x, double *y)
{
	const double *scale = op->arg[SCALE_RANGE].v;
	const double *range = op->arg[ASPECT_RANGE].v;
	double factor, aspect;

	*x = *y = 1;
	if (tsi_words_double(w) < tsi_op_number(op, SCALE_PROB)) {
		factor = tsi_words_between(w, scale[0], scale[1]);
		*x = *y = tsi_op_number(op, SCALE_AREA) ? 1 / sqrt(factor)
							: factor;
	}
	if (tsi_words_double(w) < tsi_op_number(op, ASPECT_PROB)) {
		aspect =
			exp(tsi_words_between(w, log(range[0]), log(range[1])));
		*x *= sqrt(aspect);
		*y /= sqrt(aspect);
	}
}

static int draw_resize(const struct tsi_op *op, struct tsi_words *w,
		       uint32_t width, uint32_t height, double *draws)
{
	const double longest = tsi_op_number(op, LONGEST);
	const double down = height / op->arg[SIZE].v[0];
	const double across = width / op->arg[SIZE].v[1];
	const double ratio = fmax(down, across) * longest +
			     fmin(down, across) * (1 - longest);
	double x, y;

	draw_factors(op, w, &x, &y);
	draws[TO_HEIGHT] = rint(height * y / ratio);
	draws[TO_WIDTH] = rint(width * x / ratio);
	draws[BY_FILTER] = tsi_sizes_draw_filter(op, FILTER, w);
	if (draws[TO_HEIGHT] >= 1 && draws[TO_WIDTH] >= 1 &&
	    draws[TO_HEIGHT] <= INT32_MAX && draws[TO_WIDTH] <= INT32_MAX)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%u x %u pixels are too thin for ResizeKeepRatio(), "
		       "which would make %.0f x %.0f of them",
		       width, height, draws[TO_WIDTH], draws[TO_HEIGHT]);
}

static bool plan_resize(const struct tsi_op *op, const double *draws,
			struct tsi_framing *g)
{
	(void)op;
	return tsi_framing_resize(g, (uint32_t)draws[TO_WIDTH],
				  (uint32_t)draws[TO_HEIGHT],
				  (enum tsi_filter)draws[BY_FILTER]);
}

static void size_resize(const struct tsi_op *op, struct tsi_op_size *s)
{
	(void)op;
	s->known = false;
}

const struct tsi_op_type tsi_op_resize_keep_ratio = {
	.name = "ResizeKeepRatio",
	.args = resize_args,
	.help = "timm's: to size, for longest=0 as the least edges, for 1 as "
		"the most; random is bilinear or bicubic",
	.check = check_resize,
	.count = count_resize,
	.draws = "height, width; the interpolation, of bilinear, nearest, box, "
		 "hamming, bicubic and lanczos from 0",
	.size = size_resize,
	.draw = draw_resize,
	.sized = true,
	.plan = plan_resize,
	.moves = true,
};

/* ------------------------------------------------------------------------
 * CenterCropOrPad, RandomCropOrPad
 */

enum { CROP_SIZE, FILL, MODE, MASK_FILL };
enum { TOP, LEFT, CROP_DRAWS };

static const struct tsi_arg crop_args[] = {
	[CROP_SIZE] = TSI_ARG_SIZE,
	[FILL] = TSI_ARG_FILL,
	[MODE] = TSI_ARG_PADDING_MODE,
	[MASK_FILL] = TSI_ARG_MASK_FILL,
	{ 0 },
};

static bool check_crop(struct tsi_op *op, const char **why)
{
	(void)why;
	tsi_sizes_pair(&op->arg[CROP_SIZE]);
	return true;
}

/* The window in a picture, beyond whose edges it may reach. */
struct window {
	int64_t left;
	int64_t top;
	uint32_t width;
	uint32_t height;
};

static struct window random_window(const struct tsi_op *op, const double *draws)
{
	return (struct window){ (int64_t)draws[LEFT], (int64_t)draws[TOP],
				(uint32_t)op->arg[CROP_SIZE].v[1],
				(uint32_t)op->arg[CROP_SIZE].v[0] };
}

static struct window centre_window(const struct tsi_op *op, uint32_t width,
				   uint32_t height)
{
	const uint32_t to_height = (uint32_t)op->arg[CROP_SIZE].v[0];
	const uint32_t to_width = (uint32_t)op->arg[CROP_SIZE].v[1];

	return (struct window){ tsi_sizes_centre(width, to_width),
				tsi_sizes_centre(height, to_height), to_width,
				to_height };
}

static bool plan_window(const struct tsi_op *op, const struct window *w,
			struct tsi_framing *g)
{
	uint8_t fill[3];

	if (tsi_op_number(op, MODE) != TSI_PAD_CONSTANT)
		return false;
	tsi_sizes_fill(&op->arg[FILL], fill);
	return tsi_framing_crop(g, w->left, w->top, w->width, w->height, fill);
}

static int32_t beyond(int64_t pixels)
{
	return pixels > 0 ? (int32_t)pixels : 0;
}

static struct tsi_pad_border border_of(const struct window *w, uint32_t width,
				       uint32_t height)
{
	return (struct tsi_pad_border){
		.left = beyond(-w->left),
		.top = beyond(-w->top),
		.right = beyond(w->left + w->width - width),
		.bottom = beyond(w->top + w->height - height),
	};
}

/* The window of a picture that has its border. */
static struct tsi_framing inside(const struct window *w, uint32_t width,
				 uint32_t height)
{
	static const uint8_t black[3];
	struct tsi_framing g = tsi_framing_of(width, height);

	tsi_framing_crop(&g, w->left < 0 ? 0 : w->left, w->top < 0 ? 0 : w->top,
			 w->width, w->height, black);
	return g;
}

static int apply_window(const struct tsi_op *op, const struct window *w,
			struct tsi_canvas *c)
{
	const struct tsi_pad_border b = border_of(w, c->width, c->height);
	struct tsi_framing g;
	uint8_t fill[3];
	int err;

	tsi_sizes_fill(&op->arg[FILL], fill);
	err = tsi_pad(c, &b, (enum tsi_pad_mode)tsi_op_number(op, MODE), fill);
	if (err)
		return err;
	g = inside(w, c->width, c->height);
	return tsi_framing_apply(&g, c);
}

static int mask_window(const struct tsi_op *op, const struct window *w,
		       struct tsi_mask *m)
{
	const struct tsi_pad_border b = border_of(w, m->width, m->height);
	const uint8_t fill =
		tsi_sizes_mask_fill(&op->arg[MASK_FILL], &op->arg[FILL]);
	int err = tsi_mask_pad(
		m, &b, (enum tsi_pad_mode)tsi_op_number(op, MODE), fill);
	struct tsi_framing g;

	if (err)
		return err;
	g = inside(w, m->width, m->height);
	return tsi_mask_frame(m, &g, fill);
}

static void size_crop(const struct tsi_op *op, struct tsi_op_size *s)
{
	tsi_sizes_fixed(&op->arg[CROP_SIZE], s);
}

static void after_crop(const struct tsi_op *op, const double *draws,
		       uint32_t *width, uint32_t *height)
{
	(void)draws;
	*width = (uint32_t)op->arg[CROP_SIZE].v[1];
	*height = (uint32_t)op->arg[CROP_SIZE].v[0];
}

static bool plan_centre(const struct tsi_op *op, const double *draws,
			struct tsi_framing *g)
{
	const struct window w = centre_window(op, g->width, g->height);

	(void)draws;
	return plan_window(op, &w, g);
}

static int apply_centre(const struct tsi_op *op, const double *draws,
			struct tsi_canvas *c)
{
	const struct window w = centre_window(op, c->width, c->height);

	(void)draws;
	return apply_window(op, &w, c);
}

static int mask_centre(const struct tsi_op *op, const double *draws,
		       struct tsi_mask *m)
{
	const struct window w = centre_window(op, m->width, m->height);

	(void)draws;
	return mask_window(op, &w, m);
}

const struct tsi_op_type tsi_op_center_crop_or_pad = {
	.name = "CenterCropOrPad",
	.args = crop_args,
	.help = "timm's: the middle; a border surrounds a smaller picture",
	.check = check_crop,
	.size = size_crop,
	.after = after_crop,
	.plan = plan_centre,
	.apply = apply_centre,
	.mask = mask_centre,
	.unboxed = tsi_sizes_unboxed,
};

static unsigned count_crop(const struct tsi_op *op)
{
	(void)op;
	return CROP_DRAWS;
}

/* From 0 to the difference, which may be below 0. */
static double draw_edge(struct tsi_words *w, int64_t difference)
{
	const uint32_t most =
		(uint32_t)(difference < 0 ? -difference : difference);
	const double n = tsi_words_below(w, most + 1);

	return difference < 0 ? -n : n;
}

static int draw_crop(const struct tsi_op *op, struct tsi_words *w,
		     uint32_t width, uint32_t height, double *draws)
{
	draws[TOP] = draw_edge(w, height - (int64_t)op->arg[CROP_SIZE].v[0]);
	draws[LEFT] = draw_edge(w, width - (int64_t)op->arg[CROP_SIZE].v[1]);
	return 0;
}

static bool plan_random(const struct tsi_op *op, const double *draws,
			struct tsi_framing *g)
{
	const struct window w = random_window(op, draws);

	return plan_window(op, &w, g);
}

static int apply_random(const struct tsi_op *op, const double *draws,
			struct tsi_canvas *c)
{
	const struct window w = random_window(op, draws);

	return apply_window(op, &w, c);
}

static int mask_random(const struct tsi_op *op, const double *draws,
		       struct tsi_mask *m)
{
	const struct window w = random_window(op, draws);

	return mask_window(op, &w, m);
}

const struct tsi_op_type tsi_op_random_crop_or_pad = {
	.name = "RandomCropOrPad",
	.args = crop_args,
	.help = "timm's: a random part of this size; a smaller picture is at a "
		"random place in a border",
	.check = check_crop,
	.count = count_crop,
	.draws = "top, left; negative: the border's",
	.size = size_crop,
	.draw = draw_crop,
	.sized = true,
	.after = after_crop,
	.plan = plan_random,
	.moves = true,
	.apply = apply_random,
	.mask = mask_random,
	.unboxed = tsi_sizes_unboxed,
};
