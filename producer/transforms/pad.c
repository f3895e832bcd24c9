/* SPDX-License-Identifier: MIT */
/*
 * pad.c - Pad and RandomCrop: a picture in a border, and a random part of it.
 *
 * Formulas: torchvision.transforms.RandomCrop.get_params and forward.
 */
#include "ops/pad.h"

#include "base/err.h"
#include "transforms/op.h"
#include "transforms/sizes.h"

#define PADDING(default, none_) \
	{ \
		.name = "padding", .kind = TSI_ARG_WHOLE, .value = default, \
		.least = 1, .most = 4, .min = 0, .max = TSI_SIZE_MAX, \
		.none = none_ \
	}

/* One number for all sides, or left and right, top and bottom, or all four. */
static struct tsi_pad_border border_of(const struct tsi_arg_value *v)
{
	int32_t n[4] = { 0 };

	for (unsigned k = 0; k < 4 && v->n; k++)
		n[k] = (int32_t)v->v[v->n == 4 ? k : v->n == 2 ? k % 2 : 0];
	return (struct tsi_pad_border){ n[0], n[1], n[2], n[3] };
}

static bool check_padding(const struct tsi_arg_value *v, const char **why)
{
	if (v->n != 3)
		return true;
	*why = "padding has 1, 2 or 4 numbers";
	return false;
}

/* ------------------------------------------------------------------------
 * Pad
 */

enum { PAD_PADDING, PAD_FILL, PAD_MODE, PAD_MASK_FILL };

static const struct tsi_arg pad_args[] = {
	[PAD_PADDING] = PADDING(NULL, false),
	[PAD_FILL] = TSI_ARG_FILL,
	[PAD_MODE] = TSI_ARG_PADDING_MODE,
	[PAD_MASK_FILL] = TSI_ARG_MASK_FILL,
	{ 0 },
};

static bool check_pad(struct tsi_op *op, const char **why)
{
	return check_padding(&op->arg[PAD_PADDING], why);
}

static void size_pad(const struct tsi_op *op, struct tsi_op_size *s)
{
	const struct tsi_pad_border b = border_of(&op->arg[PAD_PADDING]);

	s->width += (uint32_t)(b.left + b.right);
	s->height += (uint32_t)(b.top + b.bottom);
}

static void after_pad(const struct tsi_op *op, const double *draws,
		      uint32_t *width, uint32_t *height)
{
	const struct tsi_pad_border b = border_of(&op->arg[PAD_PADDING]);

	(void)draws;
	*width += (uint32_t)(b.left + b.right);
	*height += (uint32_t)(b.top + b.bottom);
}

static enum tsi_pad_mode mode_of(const struct tsi_op *op, unsigned arg)
{
	return (enum tsi_pad_mode)tsi_op_number(op, arg);
}

static bool plan_pad(const struct tsi_op *op, const double *draws,
		     struct tsi_framing *g)
{
	const struct tsi_pad_border b = border_of(&op->arg[PAD_PADDING]);
	uint8_t fill[3];

	(void)draws;
	if (mode_of(op, PAD_MODE) != TSI_PAD_CONSTANT)
		return false;
	tsi_sizes_fill(&op->arg[PAD_FILL], fill);
	return tsi_framing_crop(g, -b.left, -b.top,
				g->width + (uint32_t)(b.left + b.right),
				g->height + (uint32_t)(b.top + b.bottom), fill);
}

static int apply_pad(const struct tsi_op *op, const double *draws,
		     struct tsi_canvas *c)
{
	const struct tsi_pad_border b = border_of(&op->arg[PAD_PADDING]);
	uint8_t fill[3];

	(void)draws;
	tsi_sizes_fill(&op->arg[PAD_FILL], fill);
	return tsi_pad(c, &b, mode_of(op, PAD_MODE), fill);
}

static int mask_pad(const struct tsi_op *op, const double *draws,
		    struct tsi_mask *m)
{
	const struct tsi_pad_border b = border_of(&op->arg[PAD_PADDING]);

	(void)draws;
	return tsi_mask_pad(m, &b, mode_of(op, PAD_MODE),
			    tsi_sizes_mask_fill(&op->arg[PAD_MASK_FILL],
						&op->arg[PAD_FILL]));
}

const struct tsi_op_type tsi_op_pad = {
	.name = "Pad",
	.args = pad_args,
	.help = "a border of padding pixels",
	.check = check_pad,
	.size = size_pad,
	.after = after_pad,
	.plan = plan_pad,
	.apply = apply_pad,
	.mask = mask_pad,
	.unboxed = tsi_sizes_unboxed,
};

/* ------------------------------------------------------------------------
 * RandomCrop
 */

enum { SIZE, CROP_PADDING, IF_NEEDED, FILL, MODE, MASK_FILL };
enum { TOP, LEFT };

static const struct tsi_arg crop_args[] = {
	[SIZE] = TSI_ARG_SIZE,
	[CROP_PADDING] = PADDING("None", true),
	[IF_NEEDED] = { .name = "pad_if_needed",
			.kind = TSI_ARG_SWITCH,
			.value = "False" },
	[FILL] = TSI_ARG_FILL,
	[MODE] = TSI_ARG_PADDING_MODE,
	[MASK_FILL] = TSI_ARG_MASK_FILL,
	{ 0 },
};

static bool check_crop(struct tsi_op *op, const char **why)
{
	tsi_sizes_pair(&op->arg[SIZE]);
	return check_padding(&op->arg[CROP_PADDING], why);
}

/* All of the border: of padding, and what pad_if_needed adds on each side. */
static struct tsi_pad_border crop_border(const struct tsi_op *op,
					 uint32_t width, uint32_t height)
{
	struct tsi_pad_border b = border_of(&op->arg[CROP_PADDING]);
	int32_t x = (int32_t)op->arg[SIZE].v[1] -
		    ((int32_t)width + b.left + b.right);
	int32_t y = (int32_t)op->arg[SIZE].v[0] -
		    ((int32_t)height + b.top + b.bottom);

	if (!tsi_op_number(op, IF_NEEDED))
		return b;
	if (x > 0) {
		b.left += x;
		b.right += x;
	}
	if (y > 0) {
		b.top += y;
		b.bottom += y;
	}
	return b;
}

static unsigned count_crop(const struct tsi_op *op)
{
	(void)op;
	return 2;
}

static int draw_crop(const struct tsi_op *op, struct tsi_words *w,
		     uint32_t width, uint32_t height, double *draws)
{
	const struct tsi_pad_border b = crop_border(op, width, height);
	uint32_t wide = width + (uint32_t)(b.left + b.right);
	uint32_t high = height + (uint32_t)(b.top + b.bottom);
	uint32_t to_height = (uint32_t)op->arg[SIZE].v[0];
	uint32_t to_width = (uint32_t)op->arg[SIZE].v[1];

	if (wide < to_width || high < to_height)
		return tsi_err(TSOCK_EDATA,
			       "%u x %u pixels are too few for RandomCrop((%u, "
			       "%u)), which has no pad_if_needed=True",
			       wide, high, to_height, to_width);
	draws[TOP] = tsi_words_below(w, high - to_height + 1);
	draws[LEFT] = tsi_words_below(w, wide - to_width + 1);
	return 0;
}

static bool plan_crop(const struct tsi_op *op, const double *draws,
		      struct tsi_framing *g)
{
	const struct tsi_pad_border b = crop_border(op, g->width, g->height);
	uint8_t fill[3];

	if (mode_of(op, MODE) != TSI_PAD_CONSTANT)
		return false;
	tsi_sizes_fill(&op->arg[FILL], fill);
	return tsi_framing_crop(g, (int64_t)draws[LEFT] - b.left,
				(int64_t)draws[TOP] - b.top,
				(uint32_t)op->arg[SIZE].v[1],
				(uint32_t)op->arg[SIZE].v[0], fill);
}

static void after_crop(const struct tsi_op *op, const double *draws,
		       uint32_t *width, uint32_t *height)
{
	(void)draws;
	*width = (uint32_t)op->arg[SIZE].v[1];
	*height = (uint32_t)op->arg[SIZE].v[0];
}

/* What is drawn, of the picture in its border. */
static struct tsi_framing crop_of(const struct tsi_op *op, const double *draws,
				  uint32_t width, uint32_t height)
{
	static const uint8_t black[3];
	struct tsi_framing g = tsi_framing_of(width, height);

	tsi_framing_crop(&g, (int64_t)draws[LEFT], (int64_t)draws[TOP],
			 (uint32_t)op->arg[SIZE].v[1],
			 (uint32_t)op->arg[SIZE].v[0], black);
	return g;
}

static int apply_crop(const struct tsi_op *op, const double *draws,
		      struct tsi_canvas *c)
{
	const struct tsi_pad_border b = crop_border(op, c->width, c->height);
	struct tsi_framing g;
	uint8_t fill[3];
	int err;

	tsi_sizes_fill(&op->arg[FILL], fill);
	err = tsi_pad(c, &b, mode_of(op, MODE), fill);
	if (err)
		return err;
	g = crop_of(op, draws, c->width, c->height);
	return tsi_framing_apply(&g, c);
}

static int mask_crop(const struct tsi_op *op, const double *draws,
		     struct tsi_mask *m)
{
	const struct tsi_pad_border b = crop_border(op, m->width, m->height);
	const uint8_t fill =
		tsi_sizes_mask_fill(&op->arg[MASK_FILL], &op->arg[FILL]);
	int err = tsi_mask_pad(m, &b, mode_of(op, MODE), fill);
	struct tsi_framing g;

	if (err)
		return err;
	g = crop_of(op, draws, m->width, m->height);
	return tsi_mask_frame(m, &g, fill);
}

static void boxes_crop(const struct tsi_op *op, const double *draws,
		       struct tsi_boxes *b)
{
	const struct tsi_pad_border border =
		crop_border(op, b->width, b->height);
	struct tsi_framing g;

	tsi_boxes_pad(b, &border);
	g = crop_of(op, draws, b->width, b->height);
	tsi_boxes_frame(b, &g);
}

static void size_crop(const struct tsi_op *op, struct tsi_op_size *s)
{
	tsi_sizes_fixed(&op->arg[SIZE], s);
}

const struct tsi_op_type tsi_op_random_crop = {
	.name = "RandomCrop",
	.args = crop_args,
	.help = "a random part of this size, of the picture in its border",
	.check = check_crop,
	.count = count_crop,
	.draws = "top, left, in the picture with its border",
	.size = size_crop,
	.draw = draw_crop,
	.sized = true,
	.after = after_crop,
	.plan = plan_crop,
	.moves = true,
	.apply = apply_crop,
	.mask = mask_crop,
	.boxes = boxes_crop,
	.unboxed = tsi_sizes_unboxed,
};
