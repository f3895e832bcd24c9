/* SPDX-License-Identifier: MIT */
/*
 * rand_augment.c - RandAugment and TrivialAugmentWide.
 *
 * Formulas: torchvision/transforms/autoaugment.py.
 */
#include "transforms/op.h"
#include "transforms/policy.h"
#include "transforms/sizes.h"
#include "transforms/warps.h"

/* Most operations one after the other. */
#define MOST 16

#define BINS(least) \
	{ \
		.name = "num_magnitude_bins", .kind = TSI_ARG_WHOLE, \
		.value = "31", .min = least, .max = 1000 \
	}

/* What is drawn for each operation. */
enum { OP, MAGNITUDE, EACH };

static int apply_each(const double *draws, unsigned n,
		      const struct tsi_arg_value *filter,
		      const struct tsi_arg_value *colour, struct tsi_canvas *c)
{
	uint8_t fill[3];
	int err = 0;

	tsi_sizes_fill(colour, fill);
	for (unsigned k = 0; k < n && !err; k++, draws += EACH)
		err = tsi_policy_apply((enum tsi_policy_op)draws[OP],
				       draws[MAGNITUDE],
				       (enum tsi_filter)filter->v[0], fill, c);
	return err;
}

/* ------------------------------------------------------------------------
 * RandAugment
 */

enum { NUM_OPS, STRENGTH, RAND_BINS, RAND_FILTER, RAND_FILL };

static const struct tsi_arg rand_args[] = {
	[NUM_OPS] = { .name = "num_ops",
		      .kind = TSI_ARG_WHOLE,
		      .value = "2",
		      .min = 0,
		      .max = MOST },
	[STRENGTH] = { .name = "magnitude",
		       .kind = TSI_ARG_WHOLE,
		       .value = "9",
		       .min = 0,
		       .max = 999 },
	[RAND_BINS] = BINS(2),
	[RAND_FILTER] = TSI_ARG_WARP_FILTER("nearest"),
	[RAND_FILL] = TSI_ARG_FILL,
	{ 0 },
};

static const struct tsi_policy_space rand_space = {
	.shear = 0.3,
	.translate = 150.0 / 331.0,
	.relative = true,
	.rotate = 30,
	.enhance = 0.9,
	.of_bits = 8,
	.bits = 4,
};

static bool check_rand(struct tsi_op *op, const char **why)
{
	if (tsi_op_number(op, STRENGTH) >= tsi_op_number(op, RAND_BINS)) {
		*why = "magnitude is below num_magnitude_bins";
		return false;
	}
	return tsi_warps_filter(&op->arg[RAND_FILTER], why);
}

static unsigned count_rand(const struct tsi_op *op)
{
	return (unsigned)tsi_op_number(op, NUM_OPS) * EACH;
}

static int draw_rand(const struct tsi_op *op, struct tsi_words *w,
		     uint32_t width, uint32_t height, double *draws)
{
	for (unsigned k = 0; k < (unsigned)tsi_op_number(op, NUM_OPS);
	     k++, draws += EACH) {
		enum tsi_policy_op chosen = (enum tsi_policy_op)tsi_words_below(
			w, TSI_POLICY_SPACE);
		double m = tsi_policy_magnitude(
			&rand_space, chosen,
			(unsigned)tsi_op_number(op, STRENGTH),
			(unsigned)tsi_op_number(op, RAND_BINS), width, height);

		draws[OP] = chosen;
		draws[MAGNITUDE] = tsi_policy_either_side(w, chosen, m);
	}
	return 0;
}

static int apply_rand(const struct tsi_op *op, const double *draws,
		      struct tsi_canvas *c)
{
	return apply_each(draws, (unsigned)tsi_op_number(op, NUM_OPS),
			  &op->arg[RAND_FILTER], &op->arg[RAND_FILL], c);
}

#define DRAWS \
	"which operation, of Identity, ShearX, ShearY, TranslateX, " \
	"TranslateY, " \
	"Rotate, Brightness, Color, Contrast, Sharpness, Posterize, " \
	"Solarize, " \
	"AutoContrast and Equalize, from 0; its magnitude"

const struct tsi_op_type tsi_op_rand_augment = {
	.name = "RandAugment",
	.args = rand_args,
	.help = "num_ops of 14 operations, all with this magnitude",
	.check = check_rand,
	.count = count_rand,
	.draws = "for each: " DRAWS,
	.draw = draw_rand,
	.sized = true,
	.apply = apply_rand,
};

/* ------------------------------------------------------------------------
 * TrivialAugmentWide
 */

enum { WIDE_BINS, WIDE_FILTER, WIDE_FILL };

static const struct tsi_arg wide_args[] = {
	[WIDE_BINS] = BINS(2),
	[WIDE_FILTER] = TSI_ARG_WARP_FILTER("nearest"),
	[WIDE_FILL] = TSI_ARG_FILL,
	{ 0 },
};

static const struct tsi_policy_space wide_space = {
	.shear = 0.99,
	.translate = 32,
	.rotate = 135,
	.enhance = 0.99,
	.of_bits = 8,
	.bits = 6,
};

static bool check_wide(struct tsi_op *op, const char **why)
{
	return tsi_warps_filter(&op->arg[WIDE_FILTER], why);
}

static unsigned count_wide(const struct tsi_op *op)
{
	(void)op;
	return EACH;
}

static int draw_wide(const struct tsi_op *op, struct tsi_words *w,
		     uint32_t width, uint32_t height, double *draws)
{
	const unsigned bins = (unsigned)tsi_op_number(op, WIDE_BINS);
	enum tsi_policy_op chosen =
		(enum tsi_policy_op)tsi_words_below(w, TSI_POLICY_SPACE);
	double m = tsi_policy_magnitude(&wide_space, chosen,
					tsi_words_below(w, bins), bins, width,
					height);

	draws[OP] = chosen;
	draws[MAGNITUDE] = tsi_policy_either_side(w, chosen, m);
	return 0;
}

static int apply_wide(const struct tsi_op *op, const double *draws,
		      struct tsi_canvas *c)
{
	return apply_each(draws, 1, &op->arg[WIDE_FILTER], &op->arg[WIDE_FILL],
			  c);
}

const struct tsi_op_type tsi_op_trivial_augment = {
	.name = "TrivialAugmentWide",
	.args = wide_args,
	.help = "one of 14 operations, with any magnitude",
	.check = check_wide,
	.count = count_wide,
	.draws = DRAWS,
	.draw = draw_wide,
	.apply = apply_wide,
};
