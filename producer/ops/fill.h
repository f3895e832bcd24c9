/* SPDX-License-Identifier: MIT */
/*
 * fill.h - pixels of one colour.
 */
#ifndef TSI_OPS_FILL_H
#define TSI_OPS_FILL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* n pixels of this colour, which has `channels` values. */
static inline void tsi_fill(uint8_t *dst, size_t n, unsigned channels,
			    const uint8_t *colour)
{
	size_t bytes = n * channels, done = channels;

	if (!bytes)
		return;
	memcpy(dst, colour, channels);
	/* What is there is copied behind itself, twice as much each time. */
	for (; done < bytes; done *= 2)
		memcpy(dst + done, dst,
		       done < bytes - done ? done : bytes - done);
}

#endif
