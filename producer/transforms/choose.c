/* SPDX-License-Identifier: MIT */
/*
 * choose.c - RandomApply, RandomChoice and RandomOrder: which of some
 * operations are done.
 */
#include "transforms/op.h"
#include "transforms/sizes.h"

/* ------------------------------------------------------------------------
 * RandomApply
 */

static const struct tsi_arg apply_args[] = { TSI_ARG_P("0.5"), { 0 } };

static int draw_apply(const struct tsi_op *op, struct tsi_words *w,
		      uint32_t width, uint32_t height, double *draws)
{
	(void)width;
	(void)height;
	draws[0] = tsi_words_chance(w, tsi_op_number(op, 0));
	return 0;
}

static unsigned all_or_none(const struct tsi_op *op, const double *draws,
			    unsigned *order)
{
	unsigned n = draws[0] != 0 ? tsi_op_children(op) : 0;

	for (unsigned k = 0; k < n; k++)
		order[k] = k;
	return n;
}

const struct tsi_op_type tsi_op_random_apply = {
	.name = "RandomApply",
	.args = apply_args,
	.help = "all of its operations, with probability p",
	.chosen = all_or_none,
	.count = tsi_sizes_one,
	.draws = "1 if they are done",
	.draw = draw_apply,
};

/* ------------------------------------------------------------------------
 * RandomChoice
 */

static const struct tsi_arg choice_args[] = {
	{ .name = "p",
	  .kind = TSI_ARG_NUMBER,
	  .value = "None",
	  .least = 1,
	  .most = TSI_ARG_NUMBERS,
	  .min = 0,
	  .max = 1e9,
	  .none = true },
	{ 0 },
};

static bool check_choice(struct tsi_op *op, const char **why)
{
	const struct tsi_arg_value *p = &op->arg[0];
	double sum = 0;

	for (unsigned k = 0; k < p->n; k++)
		sum += p->v[k];
	if (!p->n || (p->n == tsi_op_children(op) && sum > 0))
		return true;
	*why = "p has a weight for each of its operations, at most 6, and not "
	       "all are 0";
	return false;
}

static int draw_choice(const struct tsi_op *op, struct tsi_words *w,
		       uint32_t width, uint32_t height, double *draws)
{
	const struct tsi_arg_value *p = &op->arg[0];
	double sum = 0, at;
	unsigned k = 0;

	(void)width;
	(void)height;
	if (!p->n) {
		draws[0] = tsi_words_below(w, tsi_op_children(op));
		return 0;
	}
	for (unsigned i = 0; i < p->n; i++)
		sum += p->v[i];
	at = tsi_words_double(w) * sum;
	while (k + 1 < p->n && at >= p->v[k])
		at -= p->v[k++];
	draws[0] = k;
	return 0;
}

static unsigned one(const struct tsi_op *op, const double *draws,
		    unsigned *order)
{
	(void)op;
	order[0] = (unsigned)draws[0];
	return 1;
}

const struct tsi_op_type tsi_op_random_choice = {
	.name = "RandomChoice",
	.args = choice_args,
	.help = "one of its operations, by the weights p or all alike",
	.check = check_choice,
	.chosen = one,
	.one = true,
	.count = tsi_sizes_one,
	.draws = "which one, from 0",
	.draw = draw_choice,
};

/* ------------------------------------------------------------------------
 * RandomOrder
 */

static int draw_order(const struct tsi_op *op, struct tsi_words *w,
		      uint32_t width, uint32_t height, double *draws)
{
	unsigned order[TSI_OPS], n = tsi_op_children(op);

	(void)width;
	(void)height;
	tsi_words_permute(w, n, order);
	for (unsigned k = 0; k < n; k++)
		draws[k] = order[k];
	return 0;
}

static unsigned in_order(const struct tsi_op *op, const double *draws,
			 unsigned *order)
{
	unsigned n = tsi_op_children(op);

	for (unsigned k = 0; k < n; k++)
		order[k] = (unsigned)draws[k];
	return n;
}

const struct tsi_op_type tsi_op_random_order = {
	.name = "RandomOrder",
	.help = "all of its operations, in a random order",
	.chosen = in_order,
	.count = tsi_op_children,
	.draws = "which one comes first, second, ..., from 0",
	.draw = draw_order,
};
