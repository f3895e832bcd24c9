/* SPDX-License-Identifier: MIT */
/*
 * op.c - drawing for an operation and doing it, with those that are in it.
 */
#include "transforms/op.h"

#include "base/err.h"

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

/* The size of a picture after it. */
static void size_after(const struct tsi_op *op, const double *draws,
		       uint32_t *width, uint32_t *height)
{
	struct tsi_framing g;

	if (op->type->after) {
		op->type->after(op, draws + op->draws, width, height);
	} else if (op->type->plan &&
		   framing_of(op, draws, *width, *height, &g)) {
		*width = g.width;
		*height = g.height;
	}
}

static void go_on(const struct tsi_op *op, struct tsi_op_sample *s,
		  const double *draws)
{
	size_after(op, draws, &s->width, &s->height);
	if (s->first_width)
		size_after(op, draws, &s->first_width, &s->first_height);
	if ((uint64_t)s->width * s->height > s->most)
		s->most = (uint64_t)s->width * s->height;
}

/* Are the draws for this picture those of the sample's first image? */
static int check_first(const struct tsi_op *op, const struct tsi_op_sample *s)
{
	if (!op->type->sized || !s->first_width ||
	    (s->width == s->first_width && s->height == s->first_height))
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%s draws once for all images of a sample, and needs "
		       "them in one size: they are %u x %u and %u x %u pixels",
		       op->type->name, s->first_width, s->first_height,
		       s->width, s->height);
}

int tsi_op_draw(const struct tsi_op *op, struct tsi_op_sample *s, double *draws)
{
	const struct tsi_op_type *type = op->type;
	struct tsi_words w =
		tsi_words_of(s->seed, s->epoch, s->index, op->place);
	double *own = draws + op->draws;
	unsigned order[TSI_OPS];
	int err = check_first(op, s);

	if (!err && type->draw)
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

int tsi_op_sound(const struct tsi_op *op, const double *draws,
		 struct tsi_wave *w)
{
	const struct tsi_op_type *type = op->type;
	unsigned order[TSI_OPS];
	int err = 0;

	if (type->sound)
		return type->sound(op, draws + op->draws, w);
	if (!type->chosen)
		return 0;
	for (unsigned k = 0, n = type->chosen(op, draws + op->draws, order);
	     k < n && !err; k++)
		err = tsi_op_sound(child_at(op, order[k]), draws, w);
	return err;
}

void tsi_op_boxes(const struct tsi_op *op, const double *draws,
		  struct tsi_boxes *b)
{
	const struct tsi_op_type *type = op->type;
	unsigned order[TSI_OPS], n = 0;
	struct tsi_framing g;

	if (type->boxes)
		type->boxes(op, draws + op->draws, b);
	else if (type->plan && framing_of(op, draws, b->width, b->height, &g))
		tsi_boxes_frame(b, &g);
	else if (type->chosen)
		n = type->chosen(op, draws + op->draws, order);
	for (unsigned k = 0; k < n; k++)
		tsi_op_boxes(child_at(op, order[k]), draws, b);
}

static bool is_done_to(const struct tsi_op_type *type,
		       enum tsi_op_beside beside)
{
	if (type->colours)
		return true;
	if (beside == TSI_OP_BOXES)
		return type->boxes || type->plan;
	return type->mask || (type->plan && !type->apply);
}

/* The arguments that don't go with it; NULL: all do. */
static const char *unfit(const struct tsi_op *op, enum tsi_op_beside beside)
{
	const struct tsi_op_type *type = op->type;
	const char *why = type->unmasked ? type->unmasked(op) : NULL;

	if (!why && beside == TSI_OP_BOXES && type->unboxed)
		why = type->unboxed(op);
	return why;
}

const struct tsi_op *tsi_op_without(const struct tsi_op *op,
				    enum tsi_op_beside beside, const char **why)
{
	const struct tsi_op *found = NULL;

	*why = unfit(op, beside);
	if (*why)
		return op;
	if (is_done_to(op->type, beside))
		return NULL;
	if (!op->type->chosen)
		return op;
	for (const struct tsi_op *c = op->child; c && !found; c = c->next)
		found = tsi_op_without(c, beside, why);
	return found;
}
