/* SPDX-License-Identifier: MIT */
/*
 * decoder.h - AVIF bytes to the pixels of one rectangle.
 *
 * As Pillow's convert("RGB"), which has been libavif's work since 11.3:
 * transparency and colour profiles are ignored, and so are the properties that
 * turn, mirror or clip an image; of a sequence the first image is read.  A file
 * that is cut short or damaged anywhere is bad, as it is to Pillow.  avif.c is
 * the only file that knows libavif; a build without libavif has avif_none.c
 * instead of it.
 */
#ifndef TSI_AVIF_DECODER_H
#define TSI_AVIF_DECODER_H

#include "pixel/decoder.h"

extern const struct tsi_decoder_ops tsi_avif_ops;

/* What names of AVIF files end with (struct tsi_decoder_ops). */
#define TSI_AVIF_EXTENSIONS " avif "

/*
 * The decoder's operations on a file's head; they know no libavif.  A file
 * whose first brand is that of any HEIF image is claimed, and refused by head
 * if none of its brands is AVIF's.
 */
bool tsi_avif_claims(const uint8_t *data, size_t len);
int tsi_avif_head(const uint8_t *data, size_t len, uint32_t *width,
		  uint32_t *height);

/* The version of libavif that is loaded, as "1.2.1"; NULL: there is none. */
const char *tsi_avif_version(void);

#endif
