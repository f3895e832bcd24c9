/* SPDX-License-Identifier: MIT */
/*
 * finish.h - what follows from a recipe's operations.
 */
#ifndef TSI_RECIPE_FINISH_H
#define TSI_RECIPE_FINISH_H

#include "recipe/recipe.h"

/*
 * Find a sample's size, number the draws, write the text.  Fails with EARG
 * where samples have no size, or one that is too large.
 */
int tsi_recipe_finish(struct tsi_recipe *r);

#endif
