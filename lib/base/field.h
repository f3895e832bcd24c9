/* SPDX-License-Identifier: MIT */
/*
 * field.h - the memory of a field's values.
 */
#ifndef TSI_BASE_FIELD_H
#define TSI_BASE_FIELD_H

#include <stdbool.h>
#include <stdint.h>

struct tsock_field;

/* Bytes of a value; 0: there is no such dtype or shape. */
uint64_t tsi_field_bytes(const struct tsock_field *f);

/* Do n bytes from at on lie in memory of this length? */
static inline bool tsi_field_lies_in(uint64_t at, uint64_t n, uint64_t length)
{
	return at <= length && n <= length - at;
}

/* The same of n words of 64 bits, which begin at a multiple of their size. */
static inline bool tsi_field_words_lie_in(uint64_t at, uint64_t n,
					  uint64_t length)
{
	return at % 8 == 0 && n <= length / 8 &&
	       tsi_field_lies_in(at, n * 8, length);
}

#endif
