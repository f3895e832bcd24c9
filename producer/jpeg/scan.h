/* SPDX-License-Identifier: MIT */
/*
 * scan.h - the markers of a JPEG file up to its pixels' data: the frame,
 * the Huffman tables, and where the data begin.
 *
 * Only the files that the decoder in entropy.h takes are described: 8-bit,
 * Huffman, sequential, one scan of all components, one component or three with
 * luma of 1x1, 2x1, 1x2 or 2x2 and chroma of 1x1, no restart markers.  Of all
 * others, and of all whose markers are damaged in any way, it is only said that
 * they are none: what those mean is libjpeg's decision alone.
 *
 * What is described here libjpeg accepts, and it reads the same from it:
 * colours are told apart as in default_decompress_parms() of its jdapimin.c,
 * and ITU-T T.81, annex B, has the markers.
 */
#ifndef TSI_JPEG_SCAN_H
#define TSI_JPEG_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jpeg/blocks.h"

/*
 * Bits in the longest file that is taken, so that a bit's position in it needs
 * 28 bits.
 */
#define TSI_JPEG_SCAN_BITS (UINT32_C(1) << 28)

/* A Huffman table: its codes ascend, the shorter ones first. */
struct tsi_jpeg_codes {
	const uint8_t *count;  /* of the codes of 1 to 16 bits: 16 numbers */
	const uint8_t *symbol; /* one for each code, in order */
};

struct tsi_jpeg_scan {
	struct tsi_jpeg_frame frame;
	/* Each component's tables; they lie in the file. */
	struct tsi_jpeg_codes dc[TSI_JPEG_COMPS];
	struct tsi_jpeg_codes ac[TSI_JPEG_COMPS];
	/*
	 * Rows of MCUs that libjpeg decodes together: more than one where a
	 * lone component has sampling factors.
	 */
	uint32_t together;
	size_t data; /* offset of the first byte behind the markers */
};

/* The first component that has the same table as c; c itself if none has. */
static inline uint8_t tsi_jpeg_same_codes(const struct tsi_jpeg_codes *of,
					  unsigned c)
{
	uint8_t i = 0;

	while (of[i].count != of[c].count)
		i++;
	return i;
}

/*
 * Read the markers of the file data[0..len).  False: the file is not for this
 * decoder, and *out is undefined.  *out points into data.  Takes time linear in
 * the length of the markers; pure, for any thread.
 */
bool tsi_jpeg_scan_read(const uint8_t *data, size_t len,
			struct tsi_jpeg_scan *out);

/*
 * Damage that begins with wrong bytes and has a marker in it later on is one:
 * rubbish has one in 256 bytes on average.  So rows are good if no marker comes
 * within so many bytes behind their data.
 */
#define TSI_JPEG_SCAN_NEAR 1024

/*
 * Where, in a scan's data and what stands behind them, is the first marker that
 * doesn't belong there: neither a restart's nor the end's?  len: there is none
 * before the end.
 */
size_t tsi_jpeg_scan_stray(const uint8_t *data, size_t len);

#endif
