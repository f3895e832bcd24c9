/* SPDX-License-Identifier: MIT */
/*
 * recipe.c - drawing, planning and doing what a recipe says.
 */
#include "recipe/recipe.h"

#include <stdlib.h>
#include <string.h>

void tsi_recipe_free(struct tsi_recipe *r)
{
	free(r);
}

int tsi_recipe_draw(const struct tsi_recipe *r, struct tsi_op_sample *s,
		    double *draws)
{
	int err = 0;

	memset(draws, 0, r->draws * sizeof(*draws));
	s->most = (uint64_t)s->width * s->height;
	for (const struct tsi_op *op = r->first; op && !err; op = op->next)
		err = tsi_op_draw(op, s, draws);
	return err;
}

/* Add op, and those behind it as far as they go, to a geometry. */
static const struct tsi_op *
plan_from(const struct tsi_op *op, const double *draws, struct tsi_geometry *g)
{
	while (op && op->type->plan && op->type->plan(op, draws + op->draws, g))
		op = op->next;
	return op;
}

const struct tsi_op *tsi_recipe_plan(const struct tsi_recipe *r, uint32_t width,
				     uint32_t height, const double *draws,
				     struct tsi_geometry *g)
{
	struct tsi_geometry_axes a;
	const struct tsi_op *rest;

	*g = tsi_geometry_of(width, height);
	rest = plan_from(r->first, draws, g);
	if (tsi_geometry_axes(g, &a))
		return rest;
	/* A window beside the image: there is nothing to decode for it. */
	*g = tsi_geometry_of(width, height);
	return r->first;
}

int tsi_recipe_apply(const struct tsi_op *from, const double *draws,
		     struct tsi_canvas *c)
{
	const struct tsi_op *op = from;
	int err = 0;

	while (op && !err) {
		struct tsi_geometry g = tsi_geometry_of(c->width, c->height);
		const struct tsi_op *next = plan_from(op, draws, &g);

		if (next != op) {
			err = tsi_geometry_apply(&g, c);
			op = next;
			continue;
		}
		err = tsi_op_apply(op, draws, c);
		op = op->next;
	}
	return err;
}

uint32_t tsi_recipe_least_bottom(const struct tsi_recipe *r, uint32_t width,
				 uint32_t height)
{
	const struct tsi_op *op = r->first;

	return r->first_alone && op->type->least_bottom
		       ? op->type->least_bottom(op, width, height)
		       : 1;
}
