/* SPDX-License-Identifier: MIT */
/*
 * op.c - drawing for an operation and doing it, with those that are in it.
 */
#include "transforms/op.h"

static const struct tsi_op *child_at(const struct tsi_op *op, unsigned k)
{
	const struct tsi_op *c = op->child;

	for (; k; k--)
		c = c->next;
	return c;
}

/* The framing of op alone, on a picture of this size; false: it can't be. */
static bool framing_of(const struct tsi_op *op, const double *draws,
		       uint32_t width, uint32_t height, struct tsi_framing *g)
{
	*g = tsi_framing_of(width, height);
	return op->type->plan(op, draws + op->draws, g);
}

static void go_on(const struct tsi_op *op, struct tsi_op_sample *s,
		  const double *draws)
{
	struct tsi_framing g;

	if (op->type->after) {
		op->type->after(op, draws + op->draws, &s->width, &s->height);
	} else if (op->type->plan &&
		   framing_of(op, draws, s->width, s->height, &g)) {
		s->width = g.width;
		s->height = g.height;
	}
	if ((uint64_t)s->width * s->height > s->most)
		s->most = (uint64_t)s->width * s->height;
}

int tsi_op_draw(const struct tsi_op *op, struct tsi_op_sample *s, double *draws)
{
	const struct tsi_op_type *type = op->type;
	struct tsi_words w =
		tsi_words_of(s->seed, s->epoch, s->index, op->place);
	double *own = draws + op->draws;
	unsigned order[TSI_OPS];
	int err = 0;

	if (type->draw)
		err = type->draw(op, &w, s->width, s->height, own);
	if (err)
		return err;
	go_on(op, s, draws);
	if (!type->chosen)
		return 0;
	for (unsigned k = 0, n = type->chosen(op, own, order); k < n && !err;
	     k++)
		err = tsi_op_draw(child_at(op, order[k]), s, draws);
	return err;
}

int tsi_op_apply(const struct tsi_op *op, const double *draws,
		 struct tsi_canvas *c)
{
	const struct tsi_op_type *type = op->type;
	struct tsi_framing g;
	unsigned order[TSI_OPS];
	int err = 0;

	if (type->apply)
		return type->apply(op, draws + op->draws, c);
	if (type->plan && framing_of(op, draws, c->width, c->height, &g))
		return tsi_framing_apply(&g, c);
	if (!type->chosen)
		return 0;
	for (unsigned k = 0, n = type->chosen(op, draws + op->draws, order);
	     k < n && !err; k++)
		err = tsi_op_apply(child_at(op, order[k]), draws, c);
	return err;
}

int tsi_op_mask(const struct tsi_op *op, const double *draws,
		struct tsi_mask *m)
{
	const struct tsi_op_type *type = op->type;
	struct tsi_framing g;
	unsigned order[TSI_OPS];
	int err = 0;

	if (type->mask)
		return type->mask(op, draws + op->draws, m);
	if (type->plan && framing_of(op, draws, m->width, m->height, &g))
		return tsi_mask_frame(m, &g, 0);
	if (!type->chosen)
		return 0;
	for (unsigned k = 0, n = type->chosen(op, draws + op->draws, order);
	     k < n && !err; k++)
		err = tsi_op_mask(child_at(op, order[k]), draws, m);
	return err;
}

const struct tsi_op *tsi_op_without_mask(const struct tsi_op *op)
{
	const struct tsi_op_type *type = op->type;
	const struct tsi_op *found = NULL;

	if (type->unmasked && type->unmasked(op))
		return op;
	if (type->mask || type->colours)
		return NULL;
	if (!type->chosen)
		return type->plan && !type->apply ? NULL : op;
	for (const struct tsi_op *c = op->child; c && !found; c = c->next)
		found = tsi_op_without_mask(c);
	return found;
}
