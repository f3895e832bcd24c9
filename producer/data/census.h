/* SPDX-License-Identifier: MIT */
/*
 * census.h - how many samples each class has, counted when it is first asked for:
 * a stream without bad files never asks.
 */
#ifndef TSI_DATA_CENSUS_H
#define TSI_DATA_CENSUS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct tsi_format;
struct tsi_table;

struct tsi_census {
	uint32_t classes;
	uint64_t *files; /* of each class; NULL: there is no memory for them */
	atomic_bool taken;
	pthread_mutex_t lock; /* of counting */
};

/* For so many classes.  Fails with ENOMEM. */
int tsi_census_init(struct tsi_census *c, uint32_t classes);

/* All zeros are allowed. */
void tsi_census_fini(struct tsi_census *c);

/* Samples of a class of the table, whose census c is.  Any thread. */
uint64_t tsi_census_files(struct tsi_census *c, const struct tsi_format *f,
			  const struct tsi_table *t, uint32_t class_);

#endif
