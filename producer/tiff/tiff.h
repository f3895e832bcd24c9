/* SPDX-License-Identifier: MIT */
/*
 * tiff.h - TIFF bytes to the pixels of one rectangle.
 *
 * As Pillow's convert("RGB"), of a file's first image: grey, colours and
 * palettes of 8 bits, in strips or tiles, as they are or compressed without
 * loss (LZW, Deflate, PackBits); alpha is ignored.  Other kinds are refused by
 * name.  A file without all of its strips or tiles is bad, as it is to Pillow;
 * damage inside of them matters down to the rectangle's last row.  tiff.c is
 * the only file that knows libtiff; a build without it has tiff_none.c.
 */
#ifndef TSI_TIFF_TIFF_H
#define TSI_TIFF_TIFF_H

#include "pixel/decoder.h"

extern const struct tsi_decoder_ops tsi_tiff_ops;

/* What names of TIFF files end with (struct tsi_decoder_ops). */
#define TSI_TIFF_EXTENSIONS " tif tiff "

/* The decoder's operations on a file's head; they know no libtiff. */
bool tsi_tiff_claims(const uint8_t *data, size_t len);
int tsi_tiff_head(const uint8_t *data, size_t len, uint32_t *width,
		  uint32_t *height);

/* The version of libtiff that is loaded, as "4.5.0"; NULL: there is none. */
const char *tsi_tiff_version(void);

#endif
