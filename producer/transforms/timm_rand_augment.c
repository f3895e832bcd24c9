/* SPDX-License-Identifier: MIT */
/*
 * timm_rand_augment.c - TimmRandAugment: timm's rand_augment_transform(), whose
 * "rand-m9-mstd0.5-inc1" is TimmRandAugment(m=9, mstd=0.5, inc=True).
 *
 * Formulas: timm/data/auto_augment.py (RandAugment).
 */
#include <math.h>

#include "transforms/op.h"
#include "transforms/sizes.h"
#include "transforms/timm_policy.h"

/* Most operations one after the other. */
#define MOST 16

enum { M, N, P, MSTD, MMAX, INC, FILTER, FILL };

static const struct tsi_arg args[] = {
	[M] = { .name = "m",
		.kind = TSI_ARG_NUMBER,
		.value = "10",
		.min = 0,
		.max = 100 },
	[N] = { .name = "n",
		.kind = TSI_ARG_WHOLE,
		.value = "2",
		.min = 0,
		.max = MOST },
	[P] = TSI_ARG_P("0.5"),
	/* Above 100: uniform from 0 to m. */
	[MSTD] = { .name = "mstd",
		   .kind = TSI_ARG_NUMBER,
		   .value = "0",
		   .min = 0,
		   .max = 1e6 },
	[MMAX] = { .name = "mmax",
		   .kind = TSI_ARG_NUMBER,
		   .value = "10",
		   .min = 0,
		   .max = 100 },
	[INC] = { .name = "inc", .kind = TSI_ARG_SWITCH, .value = "False" },
	[FILTER] = TSI_TIMM_ARG_FILTER,
	[FILL] = TSI_TIMM_ARG_FILL,
	{ 0 },
};

static unsigned count(const struct tsi_op *op)
{
	return (unsigned)tsi_op_number(op, N) * TSI_TIMM_EACH;
}

static int draw(const struct tsi_op *op, struct tsi_words *w, uint32_t width,
		uint32_t height, double *draws)
{
	const double p = tsi_op_number(op, P), std = tsi_op_number(op, MSTD);
	const struct tsi_timm_levels levels = {
		.std = std > 100 ? INFINITY : std,
		.most = tsi_op_number(op, MMAX),
		.translate = TSI_TIMM_TRANSLATE,
		.filter = (unsigned)tsi_op_number(op, FILTER),
	};

	(void)width;
	(void)height;
	for (unsigned k = 0; k < (unsigned)tsi_op_number(op, N);
	     k++, draws += TSI_TIMM_EACH) {
		enum tsi_timm_op chosen =
			(enum tsi_timm_op)tsi_words_below(w, TSI_TIMM_RAND_OPS);
		bool done = p >= 1 || tsi_words_double(w) <= p;

		if (done)
			tsi_timm_draw(&levels, chosen,
				      tsi_op_number(op, INC) != 0
					      ? TSI_TIMM_INCREASING
					      : TSI_TIMM_PLAIN,
				      tsi_op_number(op, M), w, draws);
		else
			draws[TSI_TIMM_OP] = -1;
	}
	return 0;
}

static int apply(const struct tsi_op *op, const double *draws,
		 struct tsi_canvas *c)
{
	uint8_t fill[3];
	int err = 0;

	tsi_sizes_fill(&op->arg[FILL], fill);
	for (unsigned k = 0; k < (unsigned)tsi_op_number(op, N) && !err;
	     k++, draws += TSI_TIMM_EACH)
		err = tsi_timm_apply(draws, fill, c);
	return err;
}

const struct tsi_op_type tsi_op_timm_rand_augment = {
	.name = "TimmRandAugment",
	.args = args,
	.help = "timm's RandAugment: rand-m9-mstd0.5-inc1 is m=9, mstd=0.5, "
		"inc=True; fill is the mean colour, in bytes",
	.count = count,
	.draws = "for each of n layers: " TSI_TIMM_DRAWS,
	.draw = draw,
	.apply = apply,
};
