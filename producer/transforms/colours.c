/* SPDX-License-Identifier: MIT */
/*
 * colours.c - operations on colours that are done or not, with probability p:
 * RandomGrayscale, RandomSolarize, RandomPosterize, RandomInvert,
 * RandomAutocontrast, RandomEqualize, RandomAdjustSharpness; and Grayscale.
 */
#include "ops/colour.h"
#include "transforms/op.h"
#include "transforms/sizes.h"

/* p is the last argument of each. */
static unsigned p_of(const struct tsi_op *op)
{
	unsigned k = 0;

	while (op->type->args[k + 1].name)
		k++;
	return k;
}

static int draw(const struct tsi_op *op, struct tsi_words *w, uint32_t width,
		uint32_t height, double *draws)
{
	(void)width;
	(void)height;
	draws[0] = tsi_words_chance(w, tsi_op_number(op, p_of(op)));
	return 0;
}

/* An operation of this name, which does `what` to a canvas c. */
#define COLOUR(id, name_, args_, help_, what) \
	static int id##_apply(const struct tsi_op *op, const double *draws, \
			      struct tsi_canvas *c) \
	{ \
		(void)op; \
		return draws[0] != 0 ? what : 0; \
	} \
	const struct tsi_op_type tsi_op_##id = { \
		.name = name_, \
		.args = args_, \
		.help = help_ ", with probability p", \
		.count = tsi_sizes_one, \
		.draws = "1 if it is done", \
		.draw = draw, \
		.apply = id##_apply, \
		.colours = true, \
	};

static const struct tsi_arg gray_args[] = { TSI_ARG_P("0.1"), { 0 } };
static const struct tsi_arg p_args[] = { TSI_ARG_P("0.5"), { 0 } };

static const struct tsi_arg solarize_args[] = {
	{ .name = "threshold", .kind = TSI_ARG_NUMBER, .min = 0, .max = 256 },
	TSI_ARG_P("0.5"),
	{ 0 },
};

static const struct tsi_arg posterize_args[] = {
	{ .name = "bits", .kind = TSI_ARG_WHOLE, .min = 1, .max = 8 },
	TSI_ARG_P("0.5"),
	{ 0 },
};

static const struct tsi_arg sharpness_args[] = {
	{ .name = "sharpness_factor",
	  .kind = TSI_ARG_NUMBER,
	  .min = 0,
	  .max = 1e3 },
	TSI_ARG_P("0.5"),
	{ 0 },
};

COLOUR(random_grayscale, "RandomGrayscale", gray_args,
       "the luminance in all channels", tsi_colour_grayscale(c))
COLOUR(random_solarize, "RandomSolarize", solarize_args,
       "values from threshold on inverted",
       tsi_colour_solarize(c, tsi_op_number(op, 0)))
COLOUR(random_posterize, "RandomPosterize", posterize_args,
       "the highest bits of each value",
       tsi_colour_posterize(c, (unsigned)tsi_op_number(op, 0)))
COLOUR(random_invert, "RandomInvert", p_args, "inverted", tsi_colour_invert(c))
COLOUR(random_autocontrast, "RandomAutocontrast", p_args,
       "each channel stretched from 0 to 255", tsi_colour_autocontrast(c))
COLOUR(random_equalize, "RandomEqualize", p_args,
       "each channel's histogram made even", tsi_colour_equalize(c))
COLOUR(random_sharpness, "RandomAdjustSharpness", sharpness_args,
       "sharper, or for factors below 1 smoother",
       tsi_colour_sharpness(c, tsi_op_number(op, 0)))

/* ------------------------------------------------------------------------
 * Grayscale
 */

static const struct tsi_arg channels_args[] = {
	{ .name = "num_output_channels",
	  .kind = TSI_ARG_WHOLE,
	  .value = "1",
	  .min = 1,
	  .max = 3 },
	{ 0 },
};

static bool check_channels(struct tsi_op *op, const char **why)
{
	if (tsi_op_number(op, 0) != 2)
		return true;
	*why = "num_output_channels is 1 or 3";
	return false;
}

static void gray_size(const struct tsi_op *op, struct tsi_op_size *size)
{
	size->channels = (unsigned)tsi_op_number(op, 0);
}

static int apply_gray(const struct tsi_op *op, const double *draws,
		      struct tsi_canvas *c)
{
	int err = tsi_colour_to_gray(c);

	(void)draws;
	return err || tsi_op_number(op, 0) == 1 ? err : tsi_colour_to_rgb(c);
}

const struct tsi_op_type tsi_op_grayscale = {
	.name = "Grayscale",
	.args = channels_args,
	.help = "the luminance, as one channel or in all three",
	.check = check_channels,
	.size = gray_size,
	.apply = apply_gray,
	.colours = true,
};
