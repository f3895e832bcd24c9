/* SPDX-License-Identifier: MIT */
/*
 * jpeg_plain.h - what libjpeg makes of a file when it decodes all of it row by
 * row, and how far down that counts: the reference for damaged files.
 */
#ifndef TEST_LIB_JPEG_PLAIN_H
#define TEST_LIB_JPEG_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jpeg_plain {
	uint32_t width; /* shrunk, if it is fast */
	uint32_t height;
	uint32_t rows; /* from the first one on, as below */
	uint8_t *rgb;  /* free() */
	bool many;     /* several scans: nothing else is set */
};

/*
 * fast: as in decoder.h.  False: not even the header can be read.
 *
 * All rows count if the file can be decoded to its end by a decompressor whose
 * source suspends where the file ends, which is how Pillow does it.  If not,
 * those count that are there before data are missing, or before a marker other
 * than the end's is met among the data where it isn't due, in the
 * TSI_JPEG_SCAN_NEAR bytes behind them, or anywhere behind the last row.
 */
bool jpeg_plain_read(const uint8_t *data, size_t len, unsigned fast,
		     struct jpeg_plain *out);

#endif
