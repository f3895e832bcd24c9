/* SPDX-License-Identifier: MIT */
/*
 * others_look.h - can a recipe be done to samples of several images?
 */
#ifndef TSI_RUN_OTHERS_LOOK_H
#define TSI_RUN_OTHERS_LOOK_H

#include <stdint.h>

#include "data/index.h"
#include "recipe/recipe.h"

/*
 * Look at the images of a few samples, evenly spread, if samples have several.
 * Fails with EARG (the recipe has views), with EDATA if the recipe can be done
 * to the first image and not to another one of each of these samples, as where
 * it needs images of one size, and with ENOMEM.
 */
int tsi_others_look(const struct tsi_index *x, const struct tsi_recipe *r,
		    uint64_t seed);

#endif
