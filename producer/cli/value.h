/* SPDX-License-Identifier: MIT */
/*
 * value.h - numbers, sizes, times and choices on a command line.
 *
 * Each takes the option's name for its sentence, fails with EARG, and never
 * reads a value half: "12x" is an error, not 12.
 */
#ifndef TSI_CLI_VALUE_H
#define TSI_CLI_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* A whole number in [min, max]. */
int tsi_value_count(const char *name, const char *value, uint64_t min,
		    uint64_t max, uint64_t *out);

/* Which word of a list, separated by '|', value is; the first is 0. */
int tsi_value_choice(const char *name, const char *list, const char *value,
		     uint64_t *out);

/* Bytes; K, M, G and T are powers of 1024, with or without "iB" or "B". */
int tsi_value_bytes(const char *name, const char *value, uint64_t min,
		    uint64_t max, uint64_t *out);

/* Seconds, with a fraction, as milliseconds; zero: 0 is allowed. */
int tsi_value_seconds(const char *name, const char *value, bool zero,
		      uint64_t *ms);

/* A share, from 0 to 1. */
int tsi_value_share(const char *name, const char *value, double *out);

/* A-B/WORLD, or A/WORLD where B is A, B below the world. */
int tsi_value_shard(const char *name, const char *value, uint32_t *first,
		    uint32_t *last, uint32_t *world);

/* EPOCH:POSITION */
int tsi_value_start(const char *name, const char *value, uint64_t *epoch,
		    uint64_t *position);

#endif
