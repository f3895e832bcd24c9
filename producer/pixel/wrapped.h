/* SPDX-License-Identifier: MIT */
/*
 * wrapped.h - an image file with a checksum in front of it.
 *
 * TSI_WRAPPED_MAGIC, a u64 (little-endian) that is XXH3 of the file, and the
 * file as it was.  So damage of a file that isn't packed is found, too.
 */
#ifndef TSI_PIXEL_WRAPPED_H
#define TSI_PIXEL_WRAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TSI_WRAPPED_MAGIC "\xf5tsckF1\n"
#define TSI_WRAPPED_HEAD 16u

/* Write the head that goes before these bytes. */
void tsi_wrapped_head(const void *data, size_t len,
		      uint8_t head[TSI_WRAPPED_HEAD]);

/*
 * If *data[0..*len) is a wrapped file, or its beginning, make it the file.
 * whole: there are no more bytes, so that the sum can be looked at: fails with
 * TSOCK_EDATA.
 */
int tsi_wrapped_open(const void **data, size_t *len, bool whole);

#endif
