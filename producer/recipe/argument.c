/* SPDX-License-Identifier: MIT */
/*
 * argument.c - the values of arguments, from the text of a recipe.
 */
#include "recipe/argument.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static unsigned least_of(const struct tsi_arg *a)
{
	return a->least ? a->least : 1;
}

static unsigned most_of(const struct tsi_arg *a)
{
	return a->most ? a->most : least_of(a);
}

/* Which of the words, separated by '|', the token is; -1: none. */
static int word_of(const struct tsi_token *token, const char *words)
{
	char word[40];

	for (int k = 0;; k++) {
		size_t len = strcspn(words, "|");

		snprintf(word, sizeof(word), "%.*s", (int)len, words);
		if (tsi_recipe_text_is(token, word))
			return k;
		if (!words[len])
			return -1;
		words += len + 1;
	}
}

/* Words for an argument of this kind, numbered from 0. */
const char *tsi_argument_words(const struct tsi_arg *a)
{
	if (a->kind == TSI_ARG_SWITCH)
		return "False|True";
	return a->kind == TSI_ARG_FILTER ? TSI_FILTER_WORDS : a->words;
}

/* The filter that Pillow has this number for. */
static int filter_of(double number)
{
	static const enum tsi_filter filters[] = {
		TSI_FILTER_NEAREST, TSI_FILTER_LANCZOS, TSI_FILTER_BILINEAR,
		TSI_FILTER_BICUBIC, TSI_FILTER_BOX,     TSI_FILTER_HAMMING,
	};

	return number >= 0 && number < 6 && number == floor(number)
		       ? (int)filters[(int)number]
		       : -1;
}

/* A word, or the number that stands for it. */
static int read_word(struct tsi_recipe_text *text, const struct tsi_arg *a,
		     double *out)
{
	const struct tsi_token *t = &text->token;
	int k = -1;

	if (t->kind == TSI_TOKEN_NAME)
		k = word_of(t, tsi_argument_words(a));
	else if (t->kind == TSI_TOKEN_NUMBER && a->kind == TSI_ARG_FILTER)
		k = filter_of(t->number);
	if (k < 0)
		return tsi_recipe_text_fail(text, t, "%s is one of %s", a->name,
					    tsi_argument_words(a));
	*out = k;
	tsi_recipe_text_next(text);
	return 0;
}

static int read_number(struct tsi_recipe_text *text, const struct tsi_arg *a,
		       double *out)
{
	const struct tsi_token *t = &text->token;

	if (t->kind != TSI_TOKEN_NUMBER)
		return tsi_recipe_text_fail(text, t, "%s is a number", a->name);
	if (!isfinite(t->number) || t->number < a->min || t->number > a->max)
		return tsi_recipe_text_fail(text, t, "%s is from %g to %g",
					    a->name, a->min, a->max);
	if (a->kind == TSI_ARG_WHOLE && t->number != floor(t->number))
		return tsi_recipe_text_fail(text, t, "%s is a whole number",
					    a->name);
	*out = t->number;
	tsi_recipe_text_next(text);
	return 0;
}

/* Numbers in parentheses. */
static int read_numbers(struct tsi_recipe_text *text, const struct tsi_arg *a,
			struct tsi_arg_value *out)
{
	const struct tsi_token open = text->token;
	int err = 0;

	tsi_recipe_text_next(text);
	while (!err && text->token.kind != TSI_TOKEN_CLOSE) {
		if (out->n == most_of(a))
			return tsi_recipe_text_fail(text, &text->token,
						    "%s has no more than %u",
						    a->name, most_of(a));
		err = read_number(text, a, &out->v[out->n++]);
	}
	if (err)
		return err;
	if (out->n < least_of(a))
		return tsi_recipe_text_fail(text, &open, "%s has %u numbers",
					    a->name, least_of(a));
	if (most_of(a) == 3 && out->n == 2)
		return tsi_recipe_text_fail(text, &open,
					    "%s has 1 number or 3, one for "
					    "each channel",
					    a->name);
	tsi_recipe_text_next(text);
	return 0;
}

int tsi_argument_read(struct tsi_recipe_text *text, const struct tsi_arg *a,
		      struct tsi_arg_value *out)
{
	const struct tsi_token *t = &text->token;

	out->n = 0;
	if (a->none && tsi_recipe_text_is(t, "None")) {
		tsi_recipe_text_next(text);
		return 0;
	}
	if (a->kind != TSI_ARG_NUMBER && a->kind != TSI_ARG_WHOLE) {
		out->n = 1;
		return read_word(text, a, &out->v[0]);
	}
	if (t->kind == TSI_TOKEN_OPEN && most_of(a) > 1)
		return read_numbers(text, a, out);
	if (least_of(a) > 1)
		return tsi_recipe_text_fail(text, t, "%s has %u numbers, (%s)",
					    a->name, least_of(a), "a, b");
	if (a->words && t->kind == TSI_TOKEN_NAME)
		return read_word(text, a, &out->v[0]);
	out->n = 1;
	return read_number(text, a, &out->v[0]);
}
