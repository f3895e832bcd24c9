/* SPDX-License-Identifier: MIT */
/*
 * finish.c - what follows from a recipe's operations: a sample's size, where
 * the draws of each begin, the text in full.
 */
#include "recipe/finish.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "recipe/argument.h"

/* ------------------------------------------------------------------------
 * The text
 */

struct writer {
	char *text;
	size_t len;
	bool full;
};

static void put(struct writer *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *fmt, ...)
{
	size_t room = TSI_RECIPE_TEXT - w->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(w->text + w->len, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		w->full = true;
	else
		w->len += (size_t)n;
}

/* The shortest digits that are this number. */
static void put_number(struct writer *w, double v)
{
	char digits[40];

	snprintf(digits, sizeof(digits), "%.0f", v);
	for (int n = 1; strtod(digits, NULL) != v; n++)
		snprintf(digits, sizeof(digits), "%.*g", n, v);
	put(w, "%s", digits);
}

/* Word k of those that '|' separates. */
static void put_word(struct writer *w, const char *words, unsigned k)
{
	for (; k; k--)
		words += strcspn(words, "|") + 1;
	put(w, "%.*s", (int)strcspn(words, "|"), words);
}

static void put_value(struct writer *w, const struct tsi_arg *a,
		      const struct tsi_arg_value *v)
{
	const bool numbers =
		a->kind == TSI_ARG_NUMBER || a->kind == TSI_ARG_WHOLE;

	if (!v->n && (a->none || !a->words)) {
		put(w, "None");
		return;
	}
	if (!numbers || !v->n) {
		put_word(w, tsi_argument_words(a), (unsigned)v->v[0]);
		return;
	}
	put(w, "%s", v->n > 1 ? "(" : "");
	for (unsigned k = 0; k < v->n; k++) {
		put(w, "%s", k ? ", " : "");
		put_number(w, v->v[k]);
	}
	put(w, "%s", v->n > 1 ? ")" : "");
}

static void put_ops(struct writer *w, const struct tsi_op *op);

static void put_op(struct writer *w, const struct tsi_op *op)
{
	const struct tsi_arg *a = op->type->args;
	const char *between = "";

	put(w, "%s(", op->type->name);
	if (op->child) {
		put(w, "[");
		put_ops(w, op->child);
		put(w, "]");
		between = ", ";
	}
	for (unsigned k = 0; a && k < TSI_OP_ARGS && a[k].name; k++) {
		if (a[k].unsaid && !op->arg[k].n)
			continue;
		put(w, "%s%s=", between, a[k].name);
		put_value(w, &a[k], &op->arg[k]);
		between = ", ";
	}
	put(w, ")");
}

static void put_ops(struct writer *w, const struct tsi_op *op)
{
	for (const struct tsi_op *o = op; o; o = o->next) {
		put(w, "%s", o == op ? "" : " ");
		put_op(w, o);
	}
}

/* ------------------------------------------------------------------------
 * Sizes
 */

static void size_after(const struct tsi_op *op, struct tsi_op_size *size);

/*
 * The size after operations of which one is done, or any number in any order:
 * in the latter case none of them may change it.  Likewise the channels.
 */
static void size_after_children(const struct tsi_op *op,
				struct tsi_op_size *size)
{
	const struct tsi_op_size before = *size;
	struct tsi_op_size like = before;

	for (const struct tsi_op *c = op->child; c; c = c->next) {
		struct tsi_op_size after = before;

		size_after(c, &after);
		if (c == op->child && op->type->one)
			like = *size = after;
		if (!after.known || after.width != like.width ||
		    after.height != like.height)
			size->known = false;
		if (after.channels != like.channels)
			size->channels = 0;
	}
}

static void size_after(const struct tsi_op *op, struct tsi_op_size *size)
{
	if (op->type->size)
		op->type->size(op, size);
	if (op->child)
		size_after_children(op, size);
}

/*
 * EARG: op, or one in it, has three numbers for the channels of pictures that
 * have one.
 */
static int check_colours(const struct tsi_op *op, unsigned channels)
{
	const struct tsi_arg *a = op->type->args;
	int err = 0;

	for (unsigned k = 0; a && k < TSI_OP_ARGS && a[k].name; k++)
		if (a[k].colour && op->arg[k].n >= 3 && channels != 3)
			return tsi_err(TSOCK_EARG,
				       "transform: %s's %s has three numbers, "
				       "and pictures have one channel there: "
				       "give one number, as in %s=%g",
				       op->type->name, a[k].name, a[k].name,
				       op->arg[k].v[0]);
	for (const struct tsi_op *c = op->child; c && !err; c = c->next)
		err = check_colours(c, channels);
	return err;
}

static int check_size(const struct tsi_op_size *size)
{
	if (!size->known)
		return tsi_err(TSOCK_EARG,
			       "transform: samples would differ in size, as "
			       "images do: end with an operation that gives "
			       "them one, such as CenterCrop(224)");
	if (!size->channels)
		return tsi_err(TSOCK_EARG,
			       "transform: some samples would have one channel "
			       "and others three: do Grayscale(1) to all of "
			       "them");
	if (!size->width || !size->height || size->width > TSI_IMAGE_SIZE_MAX ||
	    size->height > TSI_IMAGE_SIZE_MAX)
		return tsi_err(TSOCK_EARG,
			       "transform: samples are %u x %u pixels, and "
			       "their edges must be 1 to %u",
			       size->width, size->height, TSI_IMAGE_SIZE_MAX);
	return 0;
}

/* EARG: Normalize has other numbers for each of three channels. */
static int check_normalize(const struct tsi_ends *ends, unsigned channels)
{
	if (channels == 3 || tsi_op_ends_are_one(ends))
		return 0;
	return tsi_err(TSOCK_EARG,
		       "transform: Normalize has numbers for three channels, "
		       "and samples have one: give one mean and one std, as in "
		       "Normalize((0.5,), (0.5,))");
}

static bool is_first(const struct tsi_recipe *r, const struct tsi_op *op)
{
	bool first = false;

	for (unsigned k = 0; k < r->views; k++)
		first |= r->view[k].first == op;
	return first;
}

/* Audio has its size already: that of the crops, which the recipe may say. */
static int check_crops(const struct tsi_recipe *r)
{
	for (unsigned k = 0; k < r->ops; k++) {
		const struct tsi_op *op = &r->op[k];

		if (!op->type->crops)
			continue;
		if (!is_first(r, op))
			return tsi_err(TSOCK_EARG,
				       "transform: %s stands behind or in "
				       "another operation: put it first",
				       op->type->name);
		if (tsi_op_number(op, 0) != r->of_width)
			return tsi_err(TSOCK_EARG,
				       "transform: %s(%.0f) contradicts "
				       "--schema, by which samples have %u "
				       "frames: give both the same number",
				       op->type->name, tsi_op_number(op, 0),
				       r->of_width);
	}
	return 0;
}

static int find_size(const struct tsi_recipe *r, struct tsi_recipe_view *v)
{
	struct tsi_op_size size = { .known = r->of_width != 0,
				    .width = r->of_width,
				    .height = r->of_height,
				    .channels = 3 };
	int err = 0;

	for (const struct tsi_op *op = v->first; op && !err; op = op->next) {
		err = check_colours(op, size.channels);
		size_after(op, &size);
	}
	if (!err)
		err = check_size(&size);
	if (err)
		return err;
	v->width = size.width;
	v->height = size.height;
	v->channels = size.channels;
	return 0;
}

/* ------------------------------------------------------------------------
 * The whole
 */

static void number_draws(struct tsi_recipe *r)
{
	for (unsigned k = 0; k < r->ops; k++) {
		r->op[k].draws = r->draws;
		r->draws += tsi_op_draws(&r->op[k]);
		r->mixes |= r->op[k].type->mixes;
	}
}

/*
 * Operations that come first and can be planned decide which rows.  Of several
 * views one may need fewer of them than the others, but all are decoded.
 */
static void look_at_rows(struct tsi_recipe *r, struct tsi_recipe_view *v)
{
	bool alone = true;

	for (struct tsi_op *op = v->first; op && op->type->plan;
	     op = op->next) {
		if (op->type->moves)
			r->same_rows = false;
		if (op != v->first && op->type->size)
			alone = false;
	}
	v->first_alone = alone;
}

/* The text of a view; NULL if memory is short.  Freed by the caller. */
static char *text_of(const struct tsi_recipe_view *v)
{
	char *text = calloc(1, TSI_RECIPE_TEXT);
	struct writer w = { .text = text };

	if (text)
		put_ops(&w, v->first);
	return text;
}

/* Views that are alike and follow each other are said once: "8 * [...]". */
static void put_views(struct writer *w, const struct tsi_recipe *r)
{
	unsigned next;

	put(w, "Views(");
	for (unsigned k = 0; k < r->views; k = next) {
		char *text = text_of(&r->view[k]);

		for (next = k + 1; text && next < r->views; next++) {
			char *other = text_of(&r->view[next]);
			bool alike = other && !strcmp(text, other);

			free(other);
			if (!alike)
				break;
		}
		put(w, "%s", k ? ", " : "");
		if (next > k + 1)
			put(w, "%u * ", next - k);
		put(w, "[%s]", text ? text : "");
		w->full |= !text;
		free(text);
	}
	put(w, ")");
}

static void put_recipe(struct writer *w, const struct tsi_recipe *r)
{
	if (r->several)
		put_views(w, r);
	else
		put_ops(w, r->view[0].first);
}

int tsi_recipe_finish(struct tsi_recipe *r)
{
	struct writer w = { .text = r->text };
	int err = 0;

	r->same_rows = true;
	for (unsigned k = 0; k < r->views && !err; k++) {
		if (!r->view[k].first)
			return tsi_err(TSOCK_EARG,
				       "transform: it has no operation");
		if (r->of_sound)
			continue;
		err = find_size(r, &r->view[k]);
		if (!err)
			err = check_normalize(&r->ends, r->view[k].channels);
		look_at_rows(r, &r->view[k]);
	}
	if (!err && r->of_sound)
		err = check_crops(r);
	if (err)
		return err;
	number_draws(r);
	put_recipe(&w, r);
	if (w.full)
		return tsi_err(TSOCK_EARG,
			       "transform: with all arguments its text has "
			       "more than %d bytes",
			       TSI_RECIPE_TEXT - 1);
	return 0;
}
