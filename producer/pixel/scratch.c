/* SPDX-License-Identifier: MIT */
/*
 * scratch.c - memory that grows.
 */
#include "pixel/scratch.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "pixel/decoder.h"

static uint64_t with_reserve(uint64_t len)
{
	return (len + len / 4 + 63) / 64 * 64;
}

int tsi_scratch_grow(struct tsi_scratch *s, size_t len, const char *what)
{
	uint8_t *p;

	if (len <= s->len)
		return 0;
	len = with_reserve(len);
	p = aligned_alloc(64, len);
	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for %zu bytes of %s",
			       len, what);
	memset(p, 0, len);
	free(s->p);
	s->p = p;
	s->len = len;
	return 0;
}

uint64_t tsi_scratch_need(uint64_t len)
{
	return with_reserve(len);
}

void tsi_scratch_trim(struct tsi_scratch *s)
{
	if (s->len > TSI_SCRATCH_KEEP)
		tsi_scratch_fini(s);
}

void tsi_scratch_fini(struct tsi_scratch *s)
{
	free(s->p);
	*s = (struct tsi_scratch){ NULL, 0 };
}
