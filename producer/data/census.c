/* SPDX-License-Identifier: MIT */
/*
 * census.c - how many samples each class has.
 */
#include "data/census.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "data/format.h"
#include "data/table.h"

#define RUN 1024u /* labels that are taken at a time */

struct tsi_census {
	pthread_mutex_t lock; /* of counting */
	atomic_bool taken;
	uint32_t classes;
	uint64_t files[]; /* of each class */
};

int tsi_census_create(uint32_t classes, struct tsi_census **out)
{
	struct tsi_census *c =
		calloc(1, sizeof(*c) + classes * sizeof(c->files[0]));

	if (!c)
		return tsi_err(TSOCK_ENOMEM, "no memory for %u classes",
			       classes);
	c->classes = classes;
	pthread_mutex_init(&c->lock, NULL);
	*out = c;
	return 0;
}

void tsi_census_destroy(struct tsi_census *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void count(struct tsi_census *c, const struct tsi_format *f,
		  const struct tsi_table *t)
{
	uint64_t all = tsi_table_count(t);
	int64_t label[RUN];

	/* Nobody looks at each of 2^40 samples. */
	if (c->classes == 1) {
		c->files[0] = all;
		return;
	}
	for (uint64_t i = 0; i < all; i += RUN) {
		unsigned n = all - i < RUN ? (unsigned)(all - i) : RUN;

		tsi_format_labels(f, t, i, n, label);
		for (unsigned k = 0; k < n; k++)
			c->files[label[k]]++;
	}
}

uint64_t tsi_census_files(struct tsi_census *c, const struct tsi_format *f,
			  const struct tsi_table *t, uint32_t class_)
{
	/* Pairs with the release below: the numbers are there. */
	if (!atomic_load_explicit(&c->taken, memory_order_acquire)) {
		pthread_mutex_lock(&c->lock);
		if (!atomic_load_explicit(&c->taken, memory_order_relaxed)) {
			count(c, f, t);
			atomic_store_explicit(&c->taken, true,
					      memory_order_release);
		}
		pthread_mutex_unlock(&c->lock);
	}
	return c->files[class_];
}
