/* SPDX-License-Identifier: MIT */
/*
 * timm_auto_augment.c - TimmAutoAugment: timm's auto_augment_transform(), whose
 * "original-mstd0.5" is TimmAutoAugment(original, mstd=0.5).
 *
 * Formulas and numbers: timm/data/auto_augment.py (auto_augment_policy).
 */
#include <math.h>

#include "transforms/op.h"
#include "transforms/sizes.h"
#include "transforms/timm_policy.h"

enum { POLICY, MSTD, FILTER, FILL };

/* What the argument policy may be, in this order. */
enum { V0, V0R, ORIGINAL, ORIGINALR, THREE };

struct step {
	enum tsi_timm_op op;
	double p;
	double level;
};

#define STEP(op, p, level) \
	{ \
		TSI_TIMM_##op, p, level \
	}

/* ImageNet's, of EfficientNet for TPUs. */
static const struct step v0[][2] = {
	{ STEP(EQUALIZE, 0.8, 1), STEP(SHEAR_Y, 0.8, 4) },
	{ STEP(COLOR, 0.4, 9), STEP(EQUALIZE, 0.6, 3) },
	{ STEP(COLOR, 0.4, 1), STEP(ROTATE, 0.6, 8) },
	{ STEP(SOLARIZE, 0.8, 3), STEP(EQUALIZE, 0.4, 7) },
	{ STEP(SOLARIZE, 0.4, 2), STEP(SOLARIZE, 0.6, 2) },
	{ STEP(COLOR, 0.2, 0), STEP(EQUALIZE, 0.8, 8) },
	{ STEP(EQUALIZE, 0.4, 8), STEP(SOLARIZE_ADD, 0.8, 3) },
	{ STEP(SHEAR_X, 0.2, 9), STEP(ROTATE, 0.6, 8) },
	{ STEP(COLOR, 0.6, 1), STEP(EQUALIZE, 1.0, 2) },
	{ STEP(INVERT, 0.4, 9), STEP(ROTATE, 0.6, 0) },
	{ STEP(EQUALIZE, 1.0, 9), STEP(SHEAR_Y, 0.6, 3) },
	{ STEP(COLOR, 0.4, 7), STEP(EQUALIZE, 0.6, 0) },
	{ STEP(POSTERIZE, 0.4, 6), STEP(AUTO_CONTRAST, 0.4, 7) },
	{ STEP(SOLARIZE, 0.6, 8), STEP(COLOR, 0.6, 9) },
	{ STEP(SOLARIZE, 0.2, 4), STEP(ROTATE, 0.8, 9) },
	{ STEP(ROTATE, 1.0, 7), STEP(TRANSLATE_Y, 0.8, 9) },
	{ STEP(SHEAR_X, 0.0, 0), STEP(SOLARIZE, 0.8, 4) },
	{ STEP(SHEAR_Y, 0.8, 0), STEP(COLOR, 0.6, 4) },
	{ STEP(COLOR, 1.0, 0), STEP(ROTATE, 0.6, 2) },
	{ STEP(EQUALIZE, 0.8, 4), STEP(EQUALIZE, 0.0, 8) },
	{ STEP(EQUALIZE, 1.0, 4), STEP(AUTO_CONTRAST, 0.6, 2) },
	{ STEP(SHEAR_Y, 0.4, 7), STEP(SOLARIZE_ADD, 0.6, 7) },
	{ STEP(POSTERIZE, 0.8, 2), STEP(SOLARIZE, 0.6, 10) },
	{ STEP(SOLARIZE, 0.6, 8), STEP(EQUALIZE, 0.6, 1) },
	{ STEP(COLOR, 0.8, 6), STEP(ROTATE, 0.4, 5) },
};

/* ImageNet's, of Cubuk et al., AutoAugment (2019). */
static const struct step original[][2] = {
	{ STEP(POSTERIZE, 0.4, 8), STEP(ROTATE, 0.6, 9) },
	{ STEP(SOLARIZE, 0.6, 5), STEP(AUTO_CONTRAST, 0.6, 5) },
	{ STEP(EQUALIZE, 0.8, 8), STEP(EQUALIZE, 0.6, 3) },
	{ STEP(POSTERIZE, 0.6, 7), STEP(POSTERIZE, 0.6, 6) },
	{ STEP(EQUALIZE, 0.4, 7), STEP(SOLARIZE, 0.2, 4) },
	{ STEP(EQUALIZE, 0.4, 4), STEP(ROTATE, 0.8, 8) },
	{ STEP(SOLARIZE, 0.6, 3), STEP(EQUALIZE, 0.6, 7) },
	{ STEP(POSTERIZE, 0.8, 5), STEP(EQUALIZE, 1.0, 2) },
	{ STEP(ROTATE, 0.2, 3), STEP(SOLARIZE, 0.6, 8) },
	{ STEP(EQUALIZE, 0.6, 8), STEP(POSTERIZE, 0.4, 6) },
	{ STEP(ROTATE, 0.8, 8), STEP(COLOR, 0.4, 0) },
	{ STEP(ROTATE, 0.4, 9), STEP(EQUALIZE, 0.6, 2) },
	{ STEP(EQUALIZE, 0.0, 7), STEP(EQUALIZE, 0.8, 8) },
	{ STEP(INVERT, 0.6, 4), STEP(EQUALIZE, 1.0, 8) },
	{ STEP(COLOR, 0.6, 4), STEP(CONTRAST, 1.0, 8) },
	{ STEP(ROTATE, 0.8, 8), STEP(COLOR, 1.0, 2) },
	{ STEP(COLOR, 0.8, 8), STEP(SOLARIZE, 0.8, 7) },
	{ STEP(SHARPNESS, 0.4, 7), STEP(INVERT, 0.6, 8) },
	{ STEP(SHEAR_X, 0.6, 5), STEP(EQUALIZE, 1.0, 9) },
	{ STEP(COLOR, 0.4, 0), STEP(EQUALIZE, 0.6, 3) },
	{ STEP(EQUALIZE, 0.4, 7), STEP(SOLARIZE, 0.2, 4) },
	{ STEP(SOLARIZE, 0.6, 5), STEP(AUTO_CONTRAST, 0.6, 5) },
	{ STEP(INVERT, 0.6, 4), STEP(EQUALIZE, 1.0, 8) },
	{ STEP(COLOR, 0.6, 4), STEP(CONTRAST, 1.0, 8) },
	{ STEP(EQUALIZE, 0.8, 8), STEP(EQUALIZE, 0.6, 3) },
};

/* 3-Augment, of Touvron et al., DeiT III (2022). */
static const struct step three[] = {
	STEP(SOLARIZE, 1.0, 5),
	STEP(DESATURATE, 1.0, 10),
	STEP(BLUR, 1.0, 10),
};

#define PAIRS (sizeof(v0) / sizeof(v0[0]))
#define SINGLES (sizeof(three) / sizeof(three[0]))

static const struct tsi_arg args[] = {
	[POLICY] = { .name = "policy",
		     .kind = TSI_ARG_WORD,
		     .value = "original",
		     .words = "v0|v0r|original|originalr|3a" },
	[MSTD] = TSI_TIMM_ARG_STD("0"),
	[FILTER] = TSI_TIMM_ARG_FILTER,
	[FILL] = TSI_TIMM_ARG_FILL,
	{ 0 },
};

static unsigned count(const struct tsi_op *op)
{
	(void)op;
	return 1 + 2 * TSI_TIMM_EACH;
}

/* How posterize keeps bits: nothing else differs between v0 and v0r. */
static enum tsi_timm_way way_of(unsigned policy, enum tsi_timm_op op)
{
	if (op != TSI_TIMM_POSTERIZE || policy == V0)
		return TSI_TIMM_PLAIN;
	return policy == ORIGINAL ? TSI_TIMM_ORIGINAL : TSI_TIMM_INCREASING;
}

static int draw(const struct tsi_op *op, struct tsi_words *w, uint32_t width,
		uint32_t height, double *draws)
{
	const unsigned policy = (unsigned)tsi_op_number(op, POLICY);
	const struct tsi_timm_levels levels = {
		.std = op->arg[MSTD].n ? tsi_op_number(op, MSTD) : INFINITY,
		.most = TSI_TIMM_MOST,
		.translate = TSI_TIMM_TRANSLATE,
		.filter = (unsigned)tsi_op_number(op, FILTER),
	};
	const unsigned k =
		tsi_words_below(w, policy == THREE ? SINGLES : PAIRS);
	const struct step *s = policy == THREE      ? &three[k]
			       : policy >= ORIGINAL ? original[k]
						    : v0[k];

	(void)width;
	(void)height;
	draws[0] = k;
	for (unsigned i = 0; i < 2; i++) {
		double *own = draws + 1 + i * TSI_TIMM_EACH;

		if (i && policy == THREE)
			own[TSI_TIMM_OP] = -1;
		else if (s[i].p >= 1 || tsi_words_double(w) <= s[i].p)
			tsi_timm_draw(&levels, s[i].op, way_of(policy, s[i].op),
				      s[i].level, w, own);
		else
			own[TSI_TIMM_OP] = -1;
	}
	return 0;
}

static int apply(const struct tsi_op *op, const double *draws,
		 struct tsi_canvas *c)
{
	uint8_t fill[3];
	int err;

	tsi_sizes_fill(&op->arg[FILL], fill);
	err = tsi_timm_apply(draws + 1, fill, c);
	return err ? err : tsi_timm_apply(draws + 1 + TSI_TIMM_EACH, fill, c);
}

const struct tsi_op_type tsi_op_timm_auto_augment = {
	.name = "TimmAutoAugment",
	.args = args,
	.help = "timm's AutoAugment: original-mstd0.5 is policy=original, "
		"mstd=0.5; with mstd=None levels are uniform",
	.count = count,
	.draws = "which pair, from 0, of 3a which operation; for each of two: "
		 "which operation, of timm's 15 from 0, 15 for Desaturate, 16 "
		 "for GaussianBlurRand, or -1 if none is done; its argument, "
		 "of 16 the radius; its interpolation, of bilinear, nearest, "
		 "box, hamming and bicubic from 0",
	.draw = draw,
	.apply = apply,
};
