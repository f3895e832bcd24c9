/* SPDX-License-Identifier: MIT */
/*
 * argument.h - the values of arguments, from the text of a recipe.
 */
#ifndef TSI_RECIPE_ARGUMENT_H
#define TSI_RECIPE_ARGUMENT_H

#include "recipe/text.h"
#include "transforms/op.h"

/*
 * Read the value of an argument from the token at hand on.  Fails with EARG,
 * whose message says what it may be.
 */
int tsi_argument_read(struct tsi_recipe_text *text, const struct tsi_arg *a,
		      struct tsi_arg_value *out);

/* The words that an argument may be, numbered from 0, separated by '|'. */
const char *tsi_argument_words(const struct tsi_arg *a);

#endif
