/* SPDX-License-Identifier: MIT */
/*
 * recipedraws.c - for test_draws.py: what a recipe draws for many samples of
 * one size, without an image.
 *
 * recipedraws RECIPE SEED EPOCH WIDTH HEIGHT COUNT
 *
 * The draws of the samples 0 to COUNT - 1 go to standard output, as doubles.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "recipe/recipe.h"

static int print_draws(const struct tsi_recipe *r, struct tsi_op_sample s,
		       uint64_t count, double *draws)
{
	for (; s.index < count; s.index++) {
		struct tsi_op_sample one = s;
		int err = tsi_recipe_draw(r, &one, draws);

		if (err)
			return err;
		if (fwrite(draws, sizeof(*draws), r->draws, stdout) != r->draws)
			return tsi_err(TSOCK_ESYS, "no more can be written");
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct tsi_op_sample s = { 0 };
	struct tsi_recipe *recipe = NULL;
	double *draws = NULL;
	int err;

	if (argc != 7) {
		fputs("usage: recipedraws RECIPE SEED EPOCH WIDTH HEIGHT "
		      "COUNT\n",
		      stderr);
		return 1;
	}
	s.seed = strtoull(argv[2], NULL, 0);
	s.epoch = (uint32_t)strtoul(argv[3], NULL, 0);
	s.width = (uint32_t)strtoul(argv[4], NULL, 0);
	s.height = (uint32_t)strtoul(argv[5], NULL, 0);
	err = tsi_recipe_read(argv[1], &recipe);
	if (!err)
		draws = calloc(recipe->draws + 1, sizeof(*draws));
	if (!err && !draws)
		err = tsi_err(TSOCK_ENOMEM, "no memory");
	if (!err)
		err = print_draws(recipe, s, strtoull(argv[6], NULL, 0), draws);
	if (err)
		fprintf(stderr, "recipedraws: %s\n", tsock_errmsg());
	free(draws);
	tsi_recipe_free(recipe);
	return err != 0;
}
