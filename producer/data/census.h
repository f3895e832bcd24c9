/* SPDX-License-Identifier: MIT */
/*
 * census.h - how many samples each class has, counted when that is first asked
 * for: a stream without bad files never asks.
 */
#ifndef TSI_DATA_CENSUS_H
#define TSI_DATA_CENSUS_H

#include <stdint.h>

struct tsi_format;
struct tsi_table;

struct tsi_census;

/* For so many classes.  Fails with ENOMEM. */
int tsi_census_create(uint32_t classes, struct tsi_census **out);

/* NULL is allowed. */
void tsi_census_destroy(struct tsi_census *c);

/* Samples of a class of the table, whose census c is.  Any thread. */
uint64_t tsi_census_files(struct tsi_census *c, const struct tsi_format *f,
			  const struct tsi_table *t, uint32_t class_);

#endif
