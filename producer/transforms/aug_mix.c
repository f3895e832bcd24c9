/* SPDX-License-Identifier: MIT */
/*
 * aug_mix.c - TimmAugMix: timm's augment_and_mix_transform(), whose
 * "augmix-m5-w4-d2" is TimmAugMix(m=5, w=4, d=2); and PILAugMix: torchvision's
 * AugMix with Pillow's operations.
 *
 * Both mix chains of operations, each of which begins with the picture.
 *
 * Formulas: timm/data/auto_augment.py (AugMixAugment),
 * torchvision/transforms/autoaugment.py (AugMix).
 */
#include <math.h>

#include "ops/mix.h"
#include "transforms/op.h"
#include "transforms/policy.h"
#include "transforms/sizes.h"
#include "transforms/timm_policy.h"
#include "transforms/warps.h"

/* Most chains, and most operations of one. */
#define MOST 10

/* So many operations has a chain at most whose depth is drawn. */
#define DRAWN_DEPTH 3

#define ALPHA(name_) \
	{ \
		.name = name_, .kind = TSI_ARG_NUMBER, .value = "1", \
		.min = 1e-3, .max = 1e3 \
	}

#define WIDTH(name_) \
	{ \
		.name = name_, .kind = TSI_ARG_WHOLE, .value = "3", .min = 1, \
		.max = MOST \
	}

/* Below 1: drawn for each chain, from 1 to 3. */
#define DEPTH(name_) \
	{ \
		.name = name_, .kind = TSI_ARG_WHOLE, .value = "-1", \
		.min = -1, .max = MOST \
	}

/* How many operations of a chain there are draws for. */
static unsigned deepest(double depth)
{
	return depth > 0 ? (unsigned)depth : DRAWN_DEPTH;
}

static unsigned draw_depth(struct tsi_words *w, double depth)
{
	return depth > 0 ? (unsigned)depth
			 : 1 + tsi_words_below(w, DRAWN_DEPTH);
}

/* ------------------------------------------------------------------------
 * TimmAugMix
 */

enum { M, W, D, A, B, MSTD, PCT, FILTER, FILL };

static const struct tsi_arg timm_args[] = {
	[M] = { .name = "m",
		.kind = TSI_ARG_NUMBER,
		.value = "3",
		.min = 0,
		.max = 100 },
	[W] = WIDTH("w"),
	[D] = DEPTH("d"),
	[A] = ALPHA("a"),
	[B] = { .name = "b", .kind = TSI_ARG_SWITCH, .value = "False" },
	[MSTD] = TSI_TIMM_ARG_STD("None"),
	[PCT] = { .name = "translate_pct",
		  .kind = TSI_ARG_NUMBER,
		  .value = "0.3",
		  .min = 0,
		  .max = 10 },
	[FILTER] = TSI_TIMM_ARG_FILTER,
	[FILL] = TSI_TIMM_ARG_FILL,
	{ 0 },
};

/* In timm's order. */
static const enum tsi_timm_op timm_space[] = {
	TSI_TIMM_AUTO_CONTRAST, TSI_TIMM_COLOR,     TSI_TIMM_CONTRAST,
	TSI_TIMM_BRIGHTNESS,    TSI_TIMM_SHARPNESS, TSI_TIMM_EQUALIZE,
	TSI_TIMM_ROTATE,        TSI_TIMM_POSTERIZE, TSI_TIMM_SOLARIZE,
	TSI_TIMM_SHEAR_X,       TSI_TIMM_SHEAR_Y,   TSI_TIMM_TRANSLATE_X,
	TSI_TIMM_TRANSLATE_Y,
};
#define TIMM_SPACE (sizeof(timm_space) / sizeof(timm_space[0]))

static unsigned count_timm(const struct tsi_op *op)
{
	return 1 + (unsigned)tsi_op_number(op, W) *
			   (1 + deepest(tsi_op_number(op, D)) * TSI_TIMM_EACH);
}

static int draw_timm(const struct tsi_op *op, struct tsi_words *w,
		     uint32_t width, uint32_t height, double *draws)
{
	const double alpha = tsi_op_number(op, A), depth = tsi_op_number(op, D);
	const unsigned chains = (unsigned)tsi_op_number(op, W);
	const struct tsi_timm_levels levels = {
		.std = op->arg[MSTD].n ? tsi_op_number(op, MSTD) : INFINITY,
		.most = TSI_TIMM_MOST,
		.translate = tsi_op_number(op, PCT),
		.filter = (unsigned)tsi_op_number(op, FILTER),
	};
	double *own = draws + 1 + chains, share[MOST];

	(void)width;
	(void)height;
	tsi_words_shares(w, alpha, 2, share);
	draws[0] = (double)(float)share[0];
	tsi_words_shares(w, alpha, chains, share);
	for (unsigned k = 0; k < chains; k++) {
		unsigned n = draw_depth(w, depth);

		draws[1 + k] = (double)(float)share[k];
		for (unsigned i = 0; i < deepest(depth);
		     i++, own += TSI_TIMM_EACH)
			if (i < n)
				tsi_timm_draw(&levels,
					      timm_space[tsi_words_below(
						      w, TIMM_SPACE)],
					      TSI_TIMM_INCREASING,
					      tsi_op_number(op, M), w, own);
			else
				own[TSI_TIMM_OP] = -1;
	}
	return 0;
}

/*
 * The alphas of blending the chains in, one after the other, from their weights
 * times m: in float32, from the last one on, as timm has them.  A chain behind
 * which nothing is left to be seen has none.
 */
static void find_alphas(const double *draws, unsigned chains, float *alpha)
{
	const float m = (float)draws[0];
	float left = 1;

	for (unsigned k = chains; k; k--) {
		float weight = (float)draws[k] * m;

		alpha[k - 1] = left > 0 ? weight / left : 0;
		left *= 1 - alpha[k - 1];
	}
}

static int apply_timm(const struct tsi_op *op, const double *draws,
		      struct tsi_canvas *c)
{
	const unsigned chains = (unsigned)tsi_op_number(op, W);
	const unsigned most = deepest(tsi_op_number(op, D));
	const bool blended = tsi_op_number(op, B) != 0;
	const double *own = draws + 1 + chains;
	float alpha[MOST];
	uint8_t fill[3];
	int err = tsi_mix_begin(c);

	tsi_sizes_fill(&op->arg[FILL], fill);
	find_alphas(draws, chains, alpha);
	for (unsigned k = 0; k < chains && !err; k++) {
		tsi_mix_original(c);
		for (unsigned i = 0; i < most && !err;
		     i++, own += TSI_TIMM_EACH)
			err = tsi_timm_apply(own, fill, c);
		if (!err && blended)
			tsi_mix_blend(c, alpha[k]);
		else if (!err)
			tsi_mix_add(c, (float)draws[1 + k]);
	}
	if (err || blended)
		return err;
	tsi_mix_sum(c);
	tsi_mix_with_original(c, (float)draws[0]);
	return 0;
}

const struct tsi_op_type tsi_op_timm_aug_mix = {
	.name = "TimmAugMix",
	.args = timm_args,
	.help = "timm's AugMix: augmix-m5-w4-d2-a1-b1-mstd0.5 is m=5, w=4, "
		"d=2, "
		"a=1, b=True, mstd=0.5; without mstd levels are uniform from 0 "
		"to m, without d a chain has 1 to 3 operations",
	.count = count_timm,
	.draws = "the mix's weight; those of the w chains; for each of their "
		 "operations (3 without d): " TSI_TIMM_DRAWS,
	.draw = draw_timm,
	.mixes = true,
	.apply = apply_timm,
};

/* ------------------------------------------------------------------------
 * PILAugMix
 */

enum {
	SEVERITY,
	CHAINS,
	CHAIN_DEPTH,
	CONCENTRATION,
	ALL,
	PIL_FILTER,
	PIL_FILL
};

/* What is drawn for each operation. */
enum { OP, MAGNITUDE, EACH };

#define BINS 10

static const struct tsi_arg pil_args[] = {
	[SEVERITY] = { .name = "severity",
		       .kind = TSI_ARG_WHOLE,
		       .value = "3",
		       .min = 1,
		       .max = BINS },
	[CHAINS] = WIDTH("mixture_width"),
	[CHAIN_DEPTH] = DEPTH("chain_depth"),
	[CONCENTRATION] = ALPHA("alpha"),
	[ALL] = { .name = "all_ops", .kind = TSI_ARG_SWITCH, .value = "True" },
	[PIL_FILTER] = TSI_ARG_WARP_FILTER("bilinear"),
	[PIL_FILL] = TSI_ARG_FILL,
	{ 0 },
};

static const struct tsi_policy_space pil_magnitudes = {
	.shear = 0.3,
	.translate = 1.0 / 3,
	.relative = true,
	.rotate = 30,
	.enhance = 0.9,
	.of_bits = 4,
	.bits = 4,
};

/* In torchvision's order; the last four are those of all_ops. */
static const enum tsi_policy_op pil_space[] = {
	TSI_POLICY_SHEAR_X,     TSI_POLICY_SHEAR_Y,
	TSI_POLICY_TRANSLATE_X, TSI_POLICY_TRANSLATE_Y,
	TSI_POLICY_ROTATE,      TSI_POLICY_POSTERIZE,
	TSI_POLICY_SOLARIZE,    TSI_POLICY_AUTO_CONTRAST,
	TSI_POLICY_EQUALIZE,    TSI_POLICY_BRIGHTNESS,
	TSI_POLICY_COLOR,       TSI_POLICY_CONTRAST,
	TSI_POLICY_SHARPNESS,
};
#define PIL_SPACE (sizeof(pil_space) / sizeof(pil_space[0]))

static bool check_pil(struct tsi_op *op, const char **why)
{
	return tsi_warps_filter(&op->arg[PIL_FILTER], why);
}

static unsigned count_pil(const struct tsi_op *op)
{
	return 1 + (unsigned)tsi_op_number(op, CHAINS) *
			   (1 + deepest(tsi_op_number(op, CHAIN_DEPTH)) * EACH);
}

static void draw_pil_op(const struct tsi_op *op, struct tsi_words *w,
			uint32_t width, uint32_t height, double *draws)
{
	const unsigned space =
		tsi_op_number(op, ALL) != 0 ? PIL_SPACE : PIL_SPACE - 4;
	const enum tsi_policy_op chosen = pil_space[tsi_words_below(w, space)];
	const unsigned bin =
		tsi_words_below(w, (uint32_t)tsi_op_number(op, SEVERITY));

	draws[OP] = chosen;
	draws[MAGNITUDE] = tsi_policy_either_side(
		w, chosen,
		tsi_policy_magnitude(&pil_magnitudes, chosen, bin, BINS, width,
				     height));
}

static int draw_pil(const struct tsi_op *op, struct tsi_words *w,
		    uint32_t width, uint32_t height, double *draws)
{
	const double depth = tsi_op_number(op, CHAIN_DEPTH);
	const double alpha = tsi_op_number(op, CONCENTRATION);
	const unsigned chains = (unsigned)tsi_op_number(op, CHAINS);
	double *own = draws + 1 + chains, mixed[2], share[MOST];

	tsi_words_shares(w, alpha, 2, mixed);
	draws[0] = (double)(float)mixed[0];
	tsi_words_shares(w, alpha, chains, share);
	for (unsigned k = 0; k < chains; k++) {
		unsigned n = draw_depth(w, depth);

		draws[1 + k] = (double)((float)share[k] * (float)mixed[1]);
		for (unsigned i = 0; i < deepest(depth); i++, own += EACH)
			if (i < n)
				draw_pil_op(op, w, width, height, own);
			else
				own[OP] = -1;
	}
	return 0;
}

static int apply_pil(const struct tsi_op *op, const double *draws,
		     struct tsi_canvas *c)
{
	const unsigned chains = (unsigned)tsi_op_number(op, CHAINS);
	const unsigned most = deepest(tsi_op_number(op, CHAIN_DEPTH));
	const enum tsi_filter filter =
		(enum tsi_filter)tsi_op_number(op, PIL_FILTER);
	const double *own = draws + 1 + chains;
	uint8_t fill[3];
	int err = tsi_mix_begin(c);

	tsi_sizes_fill(&op->arg[PIL_FILL], fill);
	if (!err)
		tsi_mix_add(c, (float)draws[0]);
	for (unsigned k = 0; k < chains && !err; k++) {
		tsi_mix_original(c);
		for (unsigned i = 0; i < most && !err; i++, own += EACH)
			if (own[OP] >= 0)
				err = tsi_policy_apply(
					(enum tsi_policy_op)own[OP],
					own[MAGNITUDE], filter, fill, c);
		if (!err)
			tsi_mix_add(c, (float)draws[1 + k]);
	}
	if (!err)
		tsi_mix_sum(c);
	return err;
}

const struct tsi_op_type tsi_op_pil_aug_mix = {
	.name = "PILAugMix",
	.args = pil_args,
	.help = "torchvision's AugMix, but with Pillow's operations, as in all "
		"other policies, where torchvision's own runs on tensors",
	.check = check_pil,
	.count = count_pil,
	.draws = "the picture's weight; those of the chains; for each of their "
		 "operations (3 for chain_depth=-1): which one, numbered as "
		 "RandAugment's, or -1 if none is done; its magnitude",
	.draw = draw_pil,
	.sized = true,
	.mixes = true,
	.apply = apply_pil,
};
