/* SPDX-License-Identifier: MIT */
/*
 * numbers.h - names for the rows of a table that has none: their numbers.
 */
#ifndef TSI_DATA_COLUMNAR_NUMBERS_H
#define TSI_DATA_COLUMNAR_NUMBERS_H

#include <stdint.h>

/*
 * As a column of texts has them: rows + 1 places, then "0", "1", and so on, each
 * ended by a zero.  free() it.  Fails with ENOMEM.
 */
int tsi_columnar_numbers(uint64_t rows, uint64_t **out);

#endif
