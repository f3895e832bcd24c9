/* SPDX-License-Identifier: MIT */
/*
 * auto_augment.c - AutoAugment.
 *
 * Formulas: torchvision/transforms/autoaugment.py.
 */
#include "transforms/auto_policies.h"
#include "transforms/op.h"
#include "transforms/policy.h"
#include "transforms/sizes.h"
#include "transforms/warps.h"

#define BINS 10

enum { POLICY, FILTER, FILL };

/* What is drawn: which policy, then for each of two operations these. */
enum { DONE, MAGNITUDE, EACH };

static const struct tsi_arg args[] = {
	[POLICY] = { .name = "policy",
		     .kind = TSI_ARG_WORD,
		     .value = "imagenet",
		     .words = "imagenet|cifar10|svhn" },
	[FILTER] = TSI_ARG_WARP_FILTER("nearest"),
	[FILL] = TSI_ARG_FILL,
	{ 0 },
};

static const struct tsi_policy_space space = {
	.shear = 0.3,
	.translate = 150.0 / 331.0,
	.relative = true,
	.rotate = 30,
	.enhance = 0.9,
	.of_bits = 8,
	.bits = 4,
};

static const struct tsi_auto_step *steps_of(const struct tsi_op *op,
					    unsigned policy)
{
	switch ((unsigned)tsi_op_number(op, POLICY)) {
	case 0:
		return tsi_auto_imagenet[policy];
	case 1:
		return tsi_auto_cifar10[policy];
	default:
		return tsi_auto_svhn[policy];
	}
}

static bool check(struct tsi_op *op, const char **why)
{
	return tsi_warps_filter(&op->arg[FILTER], why);
}

static unsigned count(const struct tsi_op *op)
{
	(void)op;
	return 1 + 2 * EACH;
}

static int draw(const struct tsi_op *op, struct tsi_words *w, uint32_t width,
		uint32_t height, double *draws)
{
	unsigned policy = tsi_words_below(w, TSI_AUTO_POLICIES);
	const struct tsi_auto_step *s = steps_of(op, policy);
	float p[2] = { tsi_words_uniform(w, 0, 1), tsi_words_uniform(w, 0, 1) };
	unsigned side[2] = { tsi_words_below(w, 2), tsi_words_below(w, 2) };

	draws[0] = policy;
	for (unsigned k = 0; k < 2; k++) {
		double m = tsi_policy_magnitude(&space, s[k].op, s[k].bin, BINS,
						width, height);

		draws[1 + k * EACH + DONE] = (double)p[k] <= s[k].p;
		draws[1 + k * EACH + MAGNITUDE] =
			tsi_policy_is_signed(s[k].op) && !side[k] && m != 0 ? -m
									    : m;
	}
	return 0;
}

static int apply(const struct tsi_op *op, const double *draws,
		 struct tsi_canvas *c)
{
	const struct tsi_auto_step *s = steps_of(op, (unsigned)draws[0]);
	uint8_t fill[3];
	int err = 0;

	tsi_sizes_fill(&op->arg[FILL], fill);
	for (unsigned k = 0; k < 2 && !err; k++) {
		const double *own = draws + 1 + k * EACH;

		if (own[DONE] != 0)
			err = tsi_policy_apply(
				s[k].op, own[MAGNITUDE],
				(enum tsi_filter)tsi_op_number(op, FILTER),
				fill, c);
	}
	return err;
}

const struct tsi_op_type tsi_op_auto_augment = {
	.name = "AutoAugment",
	.args = args,
	.help = "one of the 25 pairs of operations of a policy",
	.check = check,
	.count = count,
	.draws = "which pair, from 0; for each of the two 1 if it is done, and "
		 "its magnitude",
	.draw = draw,
	.sized = true,
	.apply = apply,
};
