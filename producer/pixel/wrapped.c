/* SPDX-License-Identifier: MIT */
/*
 * wrapped.c - an image file with a checksum in front of it.
 */
#include "pixel/wrapped.h"

#include <string.h>

#include "base/err.h"
#include "base/hash.h"

void tsi_wrapped_head(const void *data, size_t len,
		      uint8_t head[TSI_WRAPPED_HEAD])
{
	uint64_t sum = tsi_hash(data, len, 0);

	memcpy(head, TSI_WRAPPED_MAGIC, 8);
	memcpy(head + 8, &sum, 8);
}

int tsi_wrapped_open(const void **data, size_t *len, bool whole)
{
	const uint8_t *d = *data;
	uint64_t sum;

	if (*len < TSI_WRAPPED_HEAD || memcmp(d, TSI_WRAPPED_MAGIC, 8))
		return 0;
	memcpy(&sum, d + 8, 8);
	if (whole &&
	    tsi_hash(d + TSI_WRAPPED_HEAD, *len - TSI_WRAPPED_HEAD, 0) != sum)
		return tsi_err(TSOCK_EDATA, "the record of this file is "
					    "damaged");
	*data = d + TSI_WRAPPED_HEAD;
	*len -= TSI_WRAPPED_HEAD;
	return 0;
}
