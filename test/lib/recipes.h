/* SPDX-License-Identifier: MIT */
/*
 * recipes.h - recipes for tests, which live as long as the program.
 */
#ifndef TEST_LIB_RECIPES_H
#define TEST_LIB_RECIPES_H

#include <stdint.h>

#include "recipe/recipe.h"

/* The recipe of this text; aborts if the text is none. */
const struct tsi_recipe *recipes_of(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

/* The presets train and eval. */
const struct tsi_recipe *recipes_train(uint32_t size);
const struct tsi_recipe *recipes_eval(uint32_t resize, uint32_t size);

#endif
