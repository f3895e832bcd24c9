/* SPDX-License-Identifier: MIT */
/*
 * numbers.c - names for the rows of a table that has none.
 */
#include "data/columnar/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"

int tsi_columnar_numbers(uint64_t rows, uint64_t **out)
{
	size_t most = (size_t)snprintf(NULL, 0, "%" PRIu64, rows) + 1;
	uint64_t *at = NULL;
	char *text;

	if (rows < SIZE_MAX / 2 / (sizeof(*at) + most))
		at = malloc((rows + 1) * sizeof(*at) + rows * most + 1);
	if (!at)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for names of %" PRIu64 " samples",
			       rows);
	text = (char *)(at + rows + 1);
	at[0] = 0;
	for (uint64_t i = 0; i < rows; i++)
		at[i + 1] =
			at[i] +
			(uint64_t)snprintf(text + at[i], most, "%" PRIu64, i) +
			1;
	*out = at;
	return 0;
}
