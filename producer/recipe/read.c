/* SPDX-License-Identifier: MIT */
/*
 * read.c - the text of a recipe to its operations.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "recipe/argument.h"
#include "recipe/finish.h"
#include "recipe/recipe.h"
#include "recipe/text.h"
#include "recipe/types.h"

/* Operations in operations. */
#define DEEPEST 8

struct reader {
	struct tsi_recipe_text text;
	struct tsi_recipe *recipe;
	unsigned depth;
	unsigned inside; /* of so many operations */
	bool counted;    /* in one that numbers its operations */
	bool viewing;    /* inside of Views */
};

static int read_list(struct reader *r, struct tsi_op **first);

/* ------------------------------------------------------------------------
 * Arguments
 */

/* The number of an argument of this name, TSI_OP_ARGS if there is none. */
static unsigned arg_of(const struct tsi_op_type *type,
		       const struct tsi_token *name)
{
	for (unsigned k = 0; type->args && k < TSI_OP_ARGS; k++) {
		if (!type->args[k].name)
			break;
		if (tsi_recipe_text_is(name, type->args[k].name))
			return k;
	}
	return TSI_OP_ARGS;
}

static int refuse_arg(struct reader *r, const struct tsi_op_type *type,
		      const struct tsi_token *name)
{
	char list[200] = "";

	for (unsigned k = 0; type->args && k < TSI_OP_ARGS; k++) {
		const char *one = type->args[k].name;

		if (!one)
			break;
		snprintf(list + strlen(list), sizeof(list) - strlen(list),
			 "%s%s", k ? ", " : "", one);
	}
	return tsi_recipe_text_fail(&r->text, name, "%s has the arguments %s",
				    type->name, *list ? list : "(none)");
}

/* What is being read of an operation's parentheses. */
struct call {
	struct tsi_op *op;
	struct tsi_token name; /* of the operation, for messages */
	unsigned position;
	bool given[TSI_OP_ARGS];
};

/* "transforms=[...]", "[...]" or an operation, in one that has some in it. */
static bool is_nested(const struct reader *r, const struct call *c)
{
	enum tsi_token_kind behind = tsi_recipe_text_peek(&r->text);
	const struct tsi_token *t = &r->text.token;

	if (!c->op->type->chosen)
		return false;
	if (t->kind == TSI_TOKEN_OPEN)
		return behind == TSI_TOKEN_NAME || behind == TSI_TOKEN_OPEN ||
		       behind == TSI_TOKEN_CLOSE;
	return t->kind == TSI_TOKEN_NAME && behind == TSI_TOKEN_OPEN;
}

static int read_named(struct reader *r, struct call *c)
{
	const struct tsi_token name = r->text.token;
	unsigned k = arg_of(c->op->type, &name);

	tsi_recipe_text_next(&r->text);
	tsi_recipe_text_next(&r->text);
	if (c->op->type->chosen && tsi_recipe_text_is(&name, "transforms"))
		return 0;
	/* What changes nothing of a sample, whatever it is. */
	if (k == TSI_OP_ARGS && tsi_recipe_text_is(&name, "inplace")) {
		tsi_recipe_text_next(&r->text);
		return 0;
	}
	if (k == TSI_OP_ARGS)
		return refuse_arg(r, c->op->type, &name);
	if (c->given[k])
		return tsi_recipe_text_fail(&r->text, &name,
					    "%s is given twice",
					    c->op->type->args[k].name);
	c->given[k] = true;
	return tsi_argument_read(&r->text, &c->op->type->args[k],
				 &c->op->arg[k]);
}

static int read_positional(struct reader *r, struct call *c)
{
	const struct tsi_op_type *type = c->op->type;
	unsigned k = c->position++;

	if (!type->args || k >= TSI_OP_ARGS || !type->args[k].name)
		return refuse_arg(r, type, &r->text.token);
	c->given[k] = true;
	return tsi_argument_read(&r->text, &type->args[k], &c->op->arg[k]);
}

static int read_default(const struct tsi_arg *a, struct tsi_arg_value *out)
{
	struct tsi_recipe_text text;

	tsi_recipe_text_begin(&text, a->value);
	return tsi_argument_read(&text, a, out);
}

/* The defaults of what wasn't given. */
static int complete(struct reader *r, struct call *c)
{
	const struct tsi_op_type *type = c->op->type;
	const char *why = NULL;
	int err = 0;

	for (unsigned k = 0; type->args && k < TSI_OP_ARGS && !err; k++) {
		const struct tsi_arg *a = &type->args[k];

		if (!a->name)
			break;
		if (!c->given[k] && !a->value)
			return tsi_recipe_text_fail(&r->text, &c->name,
						    "%s needs %s", type->name,
						    a->name);
		if (!c->given[k])
			err = read_default(a, &c->op->arg[k]);
	}
	if (!err && type->chosen && !c->op->child)
		return tsi_recipe_text_fail(&r->text, &c->name,
					    "%s needs operations: %s([...])",
					    type->name, type->name);
	if (!err && type->check && !type->check(c->op, &why))
		return tsi_recipe_text_fail(&r->text, &c->name, "%s: %s",
					    type->name, why);
	return err;
}

/* The last of a list; NULL: it is empty. */
static struct tsi_op **end_of(struct tsi_op **first)
{
	while (*first)
		first = &(*first)->next;
	return first;
}

static int read_children(struct reader *r, struct tsi_op *op)
{
	const bool before = r->counted;
	int err;

	r->inside++;
	r->counted = op->type != &tsi_op_random_apply;
	err = read_list(r, end_of(&op->child));
	r->counted = before;
	r->inside--;
	return err;
}

static int read_args(struct reader *r, struct call *c)
{
	int err = 0;

	while (!err && r->text.token.kind != TSI_TOKEN_CLOSE) {
		if (is_nested(r, c))
			err = read_children(r, c->op);
		else if (r->text.token.kind == TSI_TOKEN_NAME &&
			 tsi_recipe_text_peek(&r->text) == TSI_TOKEN_EQUALS)
			err = read_named(r, c);
		else if (r->text.token.kind == TSI_TOKEN_END)
			err = tsi_recipe_text_fail(&r->text, &c->name,
						   "a ')' is missing");
		else
			err = read_positional(r, c);
	}
	if (!err)
		tsi_recipe_text_next(&r->text);
	return err;
}

/* ------------------------------------------------------------------------
 * Operations
 */

static int refuse_type(struct reader *r, const struct tsi_token *name)
{
	const bool sound = r->recipe->of_sound;
	const char *near = tsi_op_type_near(name->text, name->len, sound);
	const char *instead = tsi_op_type_instead(name->text, name->len);

	if (tsi_op_type_of(name->text, name->len, !sound))
		return tsi_recipe_text_fail(
			&r->text, name,
			"%.*s is done to %s, and samples are %s",
			(int)name->len, name->text, sound ? "images" : "audio",
			sound ? "audio" : "images");
	if (instead)
		return tsi_recipe_text_fail(
			&r->text, name, "%.*s isn't native: %s", (int)name->len,
			name->text, instead);
	if (near)
		return tsi_recipe_text_fail(&r->text, name,
					    "%.*s is unknown; did you mean %s?",
					    (int)name->len, name->text, near);
	return tsi_recipe_text_fail(
		&r->text, name,
		"%.*s isn't native (--transform help lists what is); serve it "
		"from Python (tsock.serve), or leave it out",
		(int)name->len, name->text);
}

static bool holds_only(const struct tsi_token *t)
{
	return tsi_recipe_text_is(t, "Compose") ||
	       tsi_recipe_text_is(t, "Sequential") ||
	       tsi_recipe_text_is(t, "ModuleList");
}

/* An operation with its place: by the order in which the text has them. */
static struct tsi_op *new_op(struct reader *r, const struct tsi_op_type *type,
			     const struct tsi_token *name)
{
	struct tsi_recipe *recipe = r->recipe;
	struct tsi_op *op = &recipe->op[recipe->ops];

	if (recipe->ops == TSI_OPS) {
		tsi_recipe_text_fail(&r->text, name,
				     "a recipe has at most %d operations",
				     TSI_OPS);
		return NULL;
	}
	op->type = type;
	op->place = (uint16_t)recipe->ops++;
	return op;
}

static int read_call(struct reader *r, struct call *c)
{
	int err = 0;

	tsi_recipe_text_next(&r->text);
	if (r->text.token.kind == TSI_TOKEN_OPEN) {
		tsi_recipe_text_next(&r->text);
		err = read_args(r, c);
	}
	/* As torchvision prints RandomChoice. */
	if (!err && c->op->type->chosen &&
	    !strncmp(r->text.token.from, "(p=", 3)) {
		tsi_recipe_text_next(&r->text);
		err = read_args(r, c);
	}
	return err ? err : complete(r, c);
}

static int read_end(struct reader *r, const struct tsi_op_type *type)
{
	struct tsi_op op = { .type = type };
	struct call c = { .op = &op, .name = r->text.token };
	int err = read_call(r, &c);

	if (!err && (r->inside || r->viewing))
		return tsi_recipe_text_fail(&r->text, &c.name,
					    "%s can't be in another operation",
					    type->name);
	if (!err) {
		r->recipe->ended = true;
		type->end(&op, &r->recipe->ends);
	}
	return err;
}

static int read_op(struct reader *r, struct tsi_op **to)
{
	const struct tsi_token name = r->text.token;
	const struct tsi_op_type *type =
		tsi_op_type_of(name.text, name.len, r->recipe->of_sound);
	struct call c = { .name = name };

	if (!type)
		return refuse_type(r, &name);
	if (type->end)
		return read_end(r, type);
	if (r->recipe->several && !r->viewing)
		return tsi_recipe_text_fail(
			&r->text, &name,
			"%s stands behind Views: put it into each "
			"of them",
			type->name);
	if (r->recipe->ends.normalize && !type->floats)
		return tsi_recipe_text_fail(
			&r->text, &name,
			"%s stands behind Normalize, which is done "
			"by the job's view: put it in front",
			type->name);
	c.op = *to = new_op(r, type, &name);
	if (!c.op)
		return TSOCK_EARG;
	c.op->behind = r->recipe->ended ? &r->recipe->ends : NULL;
	return read_call(r, &c);
}

/* A list of operations, or one alone, is a view. */
static int read_view(struct reader *r)
{
	struct tsi_recipe *recipe = r->recipe;

	if (recipe->views == TSI_RECIPE_VIEWS)
		return tsi_recipe_text_fail(&r->text, &r->text.token,
					    "a sample has at most %d views",
					    TSI_RECIPE_VIEWS);
	if (holds_only(&r->text.token))
		tsi_recipe_text_next(&r->text);
	return read_list(r, &recipe->view[recipe->views++].first);
}

/* "3 * [...]": the view that is behind it, so many times. */
static int read_repeated(struct reader *r)
{
	const struct tsi_token count = r->text.token;
	struct tsi_recipe_text at;
	int err = 0;

	tsi_recipe_text_next(&r->text);
	if (!tsi_recipe_text_is_sign(&r->text.token, '*') ||
	    tsi_recipe_text_peek(&r->text) != TSI_TOKEN_OPEN ||
	    count.number < 1 || count.number > TSI_RECIPE_VIEWS)
		return tsi_recipe_text_fail(
			&r->text, &count,
			"a number of views from 1 to %d stands "
			"before one: 2 * [...]",
			TSI_RECIPE_VIEWS);
	tsi_recipe_text_next(&r->text);
	at = r->text;
	for (unsigned k = 0; k < (unsigned)count.number && !err; k++) {
		r->text = at;
		err = read_view(r);
	}
	return err;
}

/* Views([...], [...]): several images for a sample. */
static int read_views(struct reader *r)
{
	const struct tsi_token name = r->text.token;
	struct tsi_recipe *recipe = r->recipe;
	int err = 0;

	if (r->inside || recipe->ops || recipe->several || recipe->ended)
		return tsi_recipe_text_fail(
			&r->text, &name,
			"Views holds all operations: it stands "
			"first, and not in another one");
	recipe->several = r->viewing = true;
	recipe->views = 0;
	tsi_recipe_text_next(&r->text);
	tsi_recipe_text_next(&r->text);
	while (!err && (r->text.token.kind == TSI_TOKEN_NAME ||
			r->text.token.kind == TSI_TOKEN_NUMBER ||
			r->text.token.kind == TSI_TOKEN_OPEN))
		err = r->text.token.kind == TSI_TOKEN_NUMBER ? read_repeated(r)
							     : read_view(r);
	if (!err && (r->text.token.kind != TSI_TOKEN_CLOSE || !recipe->views))
		err = tsi_recipe_text_fail(&r->text, &r->text.token,
					   "Views has lists of operations: "
					   "Views([...], [...])");
	tsi_recipe_text_next(&r->text);
	r->viewing = false;
	return err;
}

/* A list that is one of the operations that are chosen from, or put in order. */
static int read_together(struct reader *r, struct tsi_op **to)
{
	const struct tsi_token name = r->text.token;
	struct tsi_op *op = new_op(r, &tsi_op_random_apply, &name);
	int err;

	*to = op;
	if (!op)
		return TSOCK_EARG;
	op->arg[0] = (struct tsi_arg_value){ .n = 1, .v = { 1 } };
	r->counted = false;
	err = read_list(r, &op->child);
	r->counted = true;
	if (!err && !op->child)
		err = tsi_recipe_text_fail(&r->text, &name, "a list is empty");
	return err;
}

/* An operation, or a list of them. */
static int read_item(struct reader *r, struct tsi_op **to)
{
	const struct tsi_token t = r->text.token;
	const bool all = tsi_recipe_text_is(&t, "ModuleList");

	if (t.kind == TSI_TOKEN_NAME && holds_only(&t) &&
	    tsi_recipe_text_peek(&r->text) == TSI_TOKEN_OPEN)
		tsi_recipe_text_next(&r->text);
	if (r->text.token.kind == TSI_TOKEN_OPEN)
		return r->counted && !all ? read_together(r, to)
					  : read_list(r, to);
	return tsi_recipe_text_is(&t, "Views") ? read_views(r) : read_op(r, to);
}

/* Operations up to the end of the text or to what closes a list. */
static int read_ops(struct reader *r, struct tsi_op **first)
{
	int err = 0;

	while (!err && (r->text.token.kind == TSI_TOKEN_NAME ||
			r->text.token.kind == TSI_TOKEN_OPEN))
		err = read_item(r, end_of(first));
	return err;
}

/* Operations between parentheses, or a single one without. */
static int read_list(struct reader *r, struct tsi_op **first)
{
	const struct tsi_token open = r->text.token;
	int err;

	if (r->depth++ == DEEPEST)
		return tsi_recipe_text_fail(
			&r->text, &open,
			"at most %d operations are in each other", DEEPEST);
	if (open.kind == TSI_TOKEN_OPEN) {
		tsi_recipe_text_next(&r->text);
		err = read_ops(r, first);
		if (!err && r->text.token.kind != TSI_TOKEN_CLOSE)
			err = tsi_recipe_text_fail(
				&r->text, &r->text.token,
				"an operation or a ')' is wanted");
		tsi_recipe_text_next(&r->text);
	} else {
		err = read_item(r, first);
	}
	r->depth--;
	return err;
}

int tsi_recipe_read_like(const char *text, const struct tsi_recipe *like,
			 struct tsi_recipe **out)
{
	struct reader r = { .depth = 1 };
	int err;

	if (strlen(text) >= TSI_RECIPE_TEXT)
		return tsi_err(TSOCK_EARG,
			       "transform: the text has %zu bytes, and %d are "
			       "the most",
			       strlen(text), TSI_RECIPE_TEXT - 1);
	r.recipe = calloc(1, sizeof(*r.recipe));
	if (!r.recipe)
		return tsi_err(TSOCK_ENOMEM, "no memory for a recipe");
	*r.recipe = *like;
	r.recipe->views = 1;
	tsi_recipe_text_begin(&r.text, text);
	err = read_ops(&r, &r.recipe->view[0].first);
	if (!err && r.text.token.kind != TSI_TOKEN_END)
		err = tsi_recipe_text_fail(
			&r.text, &r.text.token,
			"the name of an operation is wanted");
	if (!err)
		err = tsi_recipe_finish(r.recipe);
	if (err)
		free(r.recipe);
	else
		*out = r.recipe;
	return err;
}
