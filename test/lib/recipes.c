/* SPDX-License-Identifier: MIT */
/*
 * recipes.c - recipes for tests.
 */
#include "test/lib/recipes.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/preset.h"
#include "tsock/tsock.h"

/* All that were read, so that none is read twice, or leaks. */
static struct kept {
	char *text;
	struct tsi_recipe *recipe;
	struct kept *next;
} * kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Noreturn void die(const char *text)
{
	fprintf(stderr, "recipe %s: %s\n", text, tsock_errmsg());
	abort();
}

static const struct tsi_recipe *keep(const char *text)
{
	struct kept *k;

	for (k = kept; k; k = k->next)
		if (!strcmp(k->text, text))
			return k->recipe;
	k = calloc(1, sizeof(*k));
	if (!k || !(k->text = strdup(text)) ||
	    tsi_recipe_read(text, &k->recipe))
		die(text);
	k->next = kept;
	kept = k;
	return k->recipe;
}

const struct tsi_recipe *recipes_of(const char *fmt, ...)
{
	const struct tsi_recipe *r;
	char text[TSI_RECIPE_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&lock);
	r = keep(text);
	pthread_mutex_unlock(&lock);
	return r;
}

const struct tsi_recipe *recipes_train(uint32_t size)
{
	return recipes_of("RandomResizedCrop(%u) RandomHorizontalFlip()", size);
}

const struct tsi_recipe *recipes_eval(uint32_t resize, uint32_t size)
{
	return recipes_of("Resize(%u) CenterCrop(%u)", resize, size);
}
