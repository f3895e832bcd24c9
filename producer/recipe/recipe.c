/* SPDX-License-Identifier: MIT */
/*
 * recipe.c - drawing, planning and doing what a recipe says.
 */
#include "recipe/recipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int tsi_recipe_read(const char *text, struct tsi_recipe **out)
{
	return tsi_recipe_read_of(text, 0, 0, out);
}

int tsi_recipe_read_of(const char *text, uint32_t width, uint32_t height,
		       struct tsi_recipe **out)
{
	const struct tsi_recipe like = { .of_width = width,
					 .of_height = height };

	return tsi_recipe_read_like(text, &like, out);
}

int tsi_recipe_read_sound(const char *text, uint32_t frames, uint32_t channels,
			  struct tsi_recipe **out)
{
	const struct tsi_recipe like = { .of_sound = true,
					 .of_width = frames,
					 .of_height = channels };

	return tsi_recipe_read_like(text, &like, out);
}

void tsi_recipe_free(struct tsi_recipe *r)
{
	free(r);
}

int tsi_recipe_draw(const struct tsi_recipe *r, struct tsi_op_sample *s,
		    double *draws)
{
	const struct tsi_op_sample image = *s;
	uint64_t most = (uint64_t)s->width * s->height;
	int err = 0;

	memset(draws, 0, r->draws * sizeof(*draws));
	for (unsigned k = 0; k < r->views && !err; k++) {
		*s = image;
		s->most = most;
		for (const struct tsi_op *op = r->view[k].first; op && !err;
		     op = op->next)
			err = tsi_op_draw(op, s, draws);
		most = s->most;
	}
	return err;
}

/* Add op, and those behind it as far as they go, to a framing. */
static const struct tsi_op *
plan_from(const struct tsi_op *op, const double *draws, struct tsi_framing *g)
{
	while (op && op->type->plan && op->type->plan(op, draws + op->draws, g))
		op = op->next;
	return op;
}

const struct tsi_op *tsi_recipe_plan(const struct tsi_recipe_view *v,
				     uint32_t width, uint32_t height,
				     const double *draws, struct tsi_framing *g)
{
	struct tsi_framing_axes a;
	const struct tsi_op *rest;

	*g = tsi_framing_of(width, height);
	rest = plan_from(v->first, draws, g);
	if (tsi_framing_axes(g, &a))
		return rest;
	/* A window beside the image: there is nothing to decode for it. */
	*g = tsi_framing_of(width, height);
	return v->first;
}

int tsi_recipe_apply(const struct tsi_op *from, const double *draws,
		     struct tsi_canvas *c)
{
	const struct tsi_op *op = from;
	int err = 0;

	while (op && !err) {
		struct tsi_framing g = tsi_framing_of(c->width, c->height);
		const struct tsi_op *next = plan_from(op, draws, &g);

		if (next != op) {
			err = tsi_framing_apply(&g, c);
			op = next;
			continue;
		}
		err = tsi_op_apply(op, draws, c);
		op = op->next;
	}
	return err;
}

void tsi_recipe_boxes(const struct tsi_recipe_view *v, const double *draws,
		      struct tsi_boxes *b)
{
	for (const struct tsi_op *op = v->first; op; op = op->next)
		tsi_op_boxes(op, draws, b);
}

int tsi_recipe_mask(const struct tsi_recipe_view *v, const double *draws,
		    struct tsi_mask *m)
{
	int err = 0;

	for (const struct tsi_op *op = v->first; op && !err; op = op->next)
		err = tsi_op_mask(op, draws, m);
	return err;
}

int tsi_recipe_sound(const struct tsi_recipe *r, unsigned k,
		     const double *draws, struct tsi_wave *w)
{
	int err = 0;

	for (const struct tsi_op *op = r->view[k].first; op && !err;
	     op = op->next)
		err = tsi_op_sound(op, draws, w);
	return err;
}

static int check_beside(const struct tsi_recipe *r, enum tsi_op_beside beside,
			const char *what)
{
	const struct tsi_op *found = NULL;
	const char *why = NULL;

	if (r->views > 1)
		return tsi_err(TSOCK_EARG,
			       "--%s: the recipe makes %u views of each image, "
			       "and %s are made for one alone",
			       what, r->views, what);
	for (const struct tsi_op *op = r->view[0].first; op && !found;
	     op = op->next)
		found = tsi_op_without(op, beside, &why);
	if (!found)
		return 0;
	return tsi_err(TSOCK_EARG,
		       "--%s: %s%s%s can't be done to %s; leave it out of the "
		       "recipe",
		       what, found->type->name, why ? " " : "", why ? why : "",
		       what);
}

int tsi_recipe_check_masks(const struct tsi_recipe *r)
{
	return check_beside(r, TSI_OP_MASK, "masks");
}

int tsi_recipe_check_boxes(const struct tsi_recipe *r)
{
	return check_beside(r, TSI_OP_BOXES, "boxes");
}

static uint32_t least_of(const struct tsi_recipe_view *v, uint32_t width,
			 uint32_t height)
{
	const struct tsi_op *op = v->first;

	return v->first_alone && op->type->least_bottom
		       ? op->type->least_bottom(op, width, height)
		       : 1;
}

uint32_t tsi_recipe_least_bottom(const struct tsi_recipe *r, uint32_t width,
				 uint32_t height)
{
	uint32_t most = 1;

	/* A sample needs what any of its views does. */
	for (unsigned k = 0; k < r->views; k++) {
		uint32_t least = least_of(&r->view[k], width, height);

		most = least > most ? least : most;
	}
	return most;
}
